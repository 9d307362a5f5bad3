"""Certificates of optimality, checked without a solver."""
