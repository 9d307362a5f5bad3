"""Port of the assignor of share groups, which runs in the broker."""
