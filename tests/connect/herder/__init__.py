"""Tests of the herder."""
