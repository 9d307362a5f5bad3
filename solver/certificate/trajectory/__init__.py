"""Certificates of sequences of rebalances: model, bound by prices, check."""
