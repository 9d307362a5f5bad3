"""Ports of the broker's assignors (KIP-848)."""
