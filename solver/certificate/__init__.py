"""Certificates of optimality that can be checked without a solver."""
