"""Source tasks: poll, transform, convert, produce, and store offsets."""
