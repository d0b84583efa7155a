"""One checkout of Millstream beside another: the processor time of the same work."""
