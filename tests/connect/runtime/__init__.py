"""Tests of running connectors and tasks."""
