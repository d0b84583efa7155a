"""The connectors that come with Millstream; they use only the public API."""
