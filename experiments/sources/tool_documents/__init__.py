"""Parsers for the JSON and text of monitoring tools, REST proxies and Kafka's scripts."""
