"""Exact method for equal weights: network flows over the subscription network."""
