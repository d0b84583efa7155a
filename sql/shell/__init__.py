"""The shell: executes typed statements and scripts, and prints their results."""
