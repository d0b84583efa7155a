"""Source tasks: poll, transform, convert, produce, and keep the offsets of what is written."""
