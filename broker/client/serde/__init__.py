"""Serdes: values to bytes and back."""
