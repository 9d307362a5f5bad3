"""Figures and page templates."""
