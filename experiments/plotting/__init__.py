"""Figures and page templates for plans, frontiers and reports."""
