"""Partitions that weigh differently: exact where small, good and bounded where large."""
