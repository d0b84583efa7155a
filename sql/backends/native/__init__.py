"""The native backend: lowers plans to topologies of streams."""
