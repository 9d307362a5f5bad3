"""Notebook helpers: convert groups and results to tables, graphs and figures."""
