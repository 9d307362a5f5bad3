"""Assignors of kassay for consumers of other client libraries.

`kassay.clients.aiokafka` needs aiokafka 0.10 or newer, `kassay.clients.kafka_python` needs
kafka-python 3.0 or newer. Their assignors have the name and the user data of the library's sticky
assignor, so that members with either assignor can share a group. The leader's assignor decides.
"""
