"""Actors: those who take part in a simulation, each in a process of its own."""
