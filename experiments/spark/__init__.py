"""Spark distributes a study; it never computes."""
