"""Exact solver for equal weights, based on network flows."""
