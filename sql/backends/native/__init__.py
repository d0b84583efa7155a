"""The native backend: plans as topologies of streams."""
