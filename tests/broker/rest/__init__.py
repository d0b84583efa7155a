"""Tests of the REST layer."""
