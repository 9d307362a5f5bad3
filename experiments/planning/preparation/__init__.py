"""Start, objectives and current assignor of a group that is planned."""
