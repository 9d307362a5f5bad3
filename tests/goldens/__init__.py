"""Recorded results of Kafka's assignor classes; see README.md."""
