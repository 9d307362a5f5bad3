"""Search for the smallest groups on which an assignor falls short of the optimum."""
