"""Simulated cluster: broker, topics, offsets and recorded rebalances."""
