"""What runs inside a task: the code of every DSL operation."""
