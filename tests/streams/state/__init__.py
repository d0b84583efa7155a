"""Tests of stores and their durability."""
