"""Stores, their changelogs and how they come back after a crash."""
