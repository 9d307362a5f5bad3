"""Search for the smallest groups on which an assignor misses the optimum."""
