"""What a text says: trees of statements and expressions, before anything is known about them."""
