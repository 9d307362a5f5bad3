"""Evidence of bounds and conflicts, which certificates contain."""
