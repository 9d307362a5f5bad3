"""History of consumer groups: generations and rebalances from ``__consumer_offsets``."""
