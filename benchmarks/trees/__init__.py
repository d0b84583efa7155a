"""This checkout of Millstream compared with another one: processor time of the same work."""
