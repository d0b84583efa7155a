"""What Admin can do, one file per kind of thing."""
