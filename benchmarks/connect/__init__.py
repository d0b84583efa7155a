"""Connectors beside loops that somebody writes by hand with the same driver."""
