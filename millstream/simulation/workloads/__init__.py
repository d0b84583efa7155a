"""Workloads: what simulated servers are asked to do; they outlive the processes that die."""
