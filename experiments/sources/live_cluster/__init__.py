"""Read groups from a running Kafka cluster through its admin interface."""
