"""Tests of the command and of the repository itself."""
