"""Rows of columns as bytes: one module for each format that SQL knows."""
