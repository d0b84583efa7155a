"""Actors: the participants of a simulation, each in its own process."""
