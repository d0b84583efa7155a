"""Tests of connect's transforms and predicates."""
