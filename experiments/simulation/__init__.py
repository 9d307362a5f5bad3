"""Groups through time: members that come and go, rebalances, and what each of them costs."""
