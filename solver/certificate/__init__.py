"""Certificates of optimality, which can be checked without a solver."""
