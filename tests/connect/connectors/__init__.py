"""Tests of the connectors that come with Millstream."""
