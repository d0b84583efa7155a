"""Tests; sub-folders mirror the packages."""
