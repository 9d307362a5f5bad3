"""Run ports of Kafka's assignors and user-defined assignors."""
