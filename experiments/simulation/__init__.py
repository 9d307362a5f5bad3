"""Simulate a consumer group over time, with its members, rebalances and their cost."""
