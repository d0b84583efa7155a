"""Stream processing beside its peers: the same records, the same broker, one process each."""
