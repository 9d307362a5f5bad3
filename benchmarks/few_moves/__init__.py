"""Open benchmark: fewest moves within a maximum load, for partitions with weights."""
