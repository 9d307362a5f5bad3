"""Simulation of a consumer group over time: its members, its rebalances and their cost."""
