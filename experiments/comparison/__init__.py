"""Comparison of assignments with the optimum, with a front, and level by level."""
