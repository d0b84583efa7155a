"""Tests of broker.batch."""
