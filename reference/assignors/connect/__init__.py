"""Ports of the assignors of Kafka Connect, and a cluster of workers with a simulated clock."""
