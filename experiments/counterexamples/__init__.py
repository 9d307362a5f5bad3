"""Search for the smallest groups on which an assignor does not reach the optimum."""
