"""One feature per file; each runs by itself on an embedded broker."""
