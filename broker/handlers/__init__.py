"""Request value to response value, without sockets."""
