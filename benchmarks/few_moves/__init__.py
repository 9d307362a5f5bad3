"""Benchmark: assign weighted partitions with the fewest moves within a maximum load."""
