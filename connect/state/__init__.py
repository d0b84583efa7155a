"""What workers store: configurations, offsets and statuses in topics."""
