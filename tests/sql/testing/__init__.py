"""Tests of the runner of SQL cases."""
