"""Exact solution of groups with few placements, for all levels and constraints."""
