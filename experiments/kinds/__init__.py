"""Compare and forecast share groups, Streams groups and Connect clusters."""
