"""Simulated consumers of the classic and the consumer protocol."""
