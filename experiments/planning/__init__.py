"""Plans of groups: causes of imbalances, moves to a balanced assignment, and forecasts."""
