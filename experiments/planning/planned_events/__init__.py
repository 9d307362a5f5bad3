"""Forecast of planned events: fewest moves over all rebalances, compared with the assignors."""
