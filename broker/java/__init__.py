"""Behaviour of Java's libraries: dates, numbers and regular expressions; no I/O."""
