"""Solver based on CP-SAT of OR-Tools, for all weights, levels and constraints."""
