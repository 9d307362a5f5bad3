"""Frontier: all non-dominated pairs of imbalance and number of moves."""
