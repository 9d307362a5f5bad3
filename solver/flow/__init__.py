"""Exact method for equal weights, based on network flows."""
