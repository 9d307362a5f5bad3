"""Requests of kafka-python that describe share groups and Streams groups."""
