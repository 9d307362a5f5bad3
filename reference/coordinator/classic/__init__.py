"""Group coordinator of the classic protocol."""
