"""Flow networks of partitions and members, node prices, and chains of transfers."""
