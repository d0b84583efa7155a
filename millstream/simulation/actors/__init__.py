"""Actors: the participants of a simulation, each in a process of its own."""
