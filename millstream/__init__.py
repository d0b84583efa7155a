"""The command `millstream`, the simulation and the testing fixture: above all other packages."""
