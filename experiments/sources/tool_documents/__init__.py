"""Parsers of the output of monitoring tools, the REST Proxy and Kafka's scripts."""
