"""Tests of the broker."""
