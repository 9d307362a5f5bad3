"""Maximum load of members that may all receive the same partitions (P||Cmax)."""
