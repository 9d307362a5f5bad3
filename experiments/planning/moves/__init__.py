"""Moves between two assignments: order, steps and explanations."""
