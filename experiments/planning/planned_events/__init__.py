"""Forecast of planned events: fewest moves over all rebalances, beside the assignors."""
