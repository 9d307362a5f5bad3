"""Searches of weighted groups: levels in order, lower loads, fewer moves, and bounds on moves."""
