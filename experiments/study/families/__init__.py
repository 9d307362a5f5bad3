"""Families of groups: a family generates a group from a seed."""
