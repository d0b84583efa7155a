"""Converters: keys, values and headers to bytes and back."""
