"""Minimise the moves over a sequence of rebalances."""
