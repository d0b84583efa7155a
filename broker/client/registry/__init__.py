"""Clients of a schema registry: what serdes ask of one."""
