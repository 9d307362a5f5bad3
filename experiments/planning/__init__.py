"""Offline planning: optimal assignment of a group, its moves, and what-if scenarios."""
