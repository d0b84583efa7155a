"""Workloads: the requests to simulated servers, and the expected results."""
