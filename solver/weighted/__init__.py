"""Weighted groups: exact methods, bounds and heuristics."""
