"""Kafka messages and records: data types, schemas and decoding."""
