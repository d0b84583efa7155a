"""The command `millstream` and what stands above all packages."""
