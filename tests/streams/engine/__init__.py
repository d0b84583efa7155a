"""Tests of the engine: tasks, time, handlers."""
