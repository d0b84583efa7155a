"""Tests of streams."""
