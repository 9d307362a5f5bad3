"""Capacity planning: number of members needed, and the effect of losing a member."""
