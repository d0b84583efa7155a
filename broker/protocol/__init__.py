"""Wire messages: bytes to values and back, without I/O."""
