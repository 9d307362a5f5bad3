"""Group coordinator of the consumer protocol (KIP-848)."""
