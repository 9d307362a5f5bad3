"""Changed groups: what-if scenarios, drain time and autoscaler values."""
