"""Optimise assignments of partitions with equal weights by network flows."""
