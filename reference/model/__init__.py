"""Vocabulary of both sides: groups, assignments, ownership and metrics."""
