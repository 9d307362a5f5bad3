"""Plan the moves of groups, explain imbalances and forecast changes."""
