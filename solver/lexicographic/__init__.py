"""Lexicographic objective: minimise one level after the other."""
