"""State stores, their changelogs, and how they are restored."""
