"""Find assignments with minimum imbalance, then fewest moves, and prove them optimal."""
