"""Plan the moves of groups, find causes of imbalance and forecast changes."""
