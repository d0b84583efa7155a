"""Stream processing compared with peers: the same records and broker, one process each."""
