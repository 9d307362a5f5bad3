"""Port of the default task assignor of Kafka Streams."""
