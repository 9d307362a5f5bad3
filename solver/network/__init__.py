"""Flow networks of partitions and members: optimal flow, node prices, chains of transfers."""
