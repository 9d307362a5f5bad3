"""Families of groups: each group is a function of the family and a seed."""
