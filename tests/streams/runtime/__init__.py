"""Tests of the runtime: runners, commits, restores, assignment."""
