"""Survey of many groups."""
