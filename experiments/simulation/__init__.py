"""Simulation of consumer groups over time: members, rebalances and their cost."""
