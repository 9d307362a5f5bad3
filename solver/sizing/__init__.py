"""Capacity planning: number of members needed, and loss of a member."""
