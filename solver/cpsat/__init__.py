"""Constraint programming with CP-SAT, for all weights, levels and constraints."""
