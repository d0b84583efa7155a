"""Exactly-once under fire: instances and the broker are killed, the results must be exact."""
