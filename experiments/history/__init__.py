"""Find past rebalances of consumer groups in records of ``__consumer_offsets`` or in logs."""
