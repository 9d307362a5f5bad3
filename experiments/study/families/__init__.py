"""Families of groups to study, each group rebuilt from its name and seed alone."""
