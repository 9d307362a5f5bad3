"""Past rebalances of consumer groups, from records of ``__consumer_offsets`` or from logs."""
