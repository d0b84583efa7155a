"""Tests of the rewrite stage."""
