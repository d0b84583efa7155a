"""One idea per file; each runs alone on the embedded broker."""
