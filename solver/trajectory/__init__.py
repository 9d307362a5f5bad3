"""Fewest moves over a sequence of rebalances, with a proof."""
