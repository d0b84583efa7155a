"""Whether data written with one schema can be read with another."""
