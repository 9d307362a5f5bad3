"""Groups, assignments and metrics, and ports of Kafka's assignors and coordinator."""
