"""Offline planning for a consumer group: moves to a balanced assignment, and scenarios."""
