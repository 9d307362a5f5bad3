"""Run assignors: Kafka's ports and user-defined ones."""
