"""Tests of Java's dates and numbers."""
