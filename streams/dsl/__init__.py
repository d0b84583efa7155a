"""The DSL: builds a Topology, never runs one."""
