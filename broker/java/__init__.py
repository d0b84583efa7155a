"""What Java programs expect: its dates, numbers and regular expressions; no I/O."""
