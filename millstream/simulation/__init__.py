"""Simulation: the whole platform in one thread, on virtual time, from one seed."""

from millstream.simulation.simulation import Simulation

__all__ = ["Simulation"]
