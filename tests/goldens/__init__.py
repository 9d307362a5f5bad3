"""Answers recorded from Kafka's own classes; see README.md."""
