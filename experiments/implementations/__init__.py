"""Run assignors: ports of Kafka and user-defined ones."""
