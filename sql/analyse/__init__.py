"""What statements mean: names resolved, types known."""
