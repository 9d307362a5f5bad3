"""Exact solution of small groups by comparing all assignments."""
