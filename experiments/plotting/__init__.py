"""Figures and page templates for reports."""
