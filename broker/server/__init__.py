"""The TCP server: the only network code of the broker."""
