"""Weighted groups: exact methods for small groups, bounds and heuristics for large ones."""
