"""Kafka messages and records: schemas, encoding and decoding."""
