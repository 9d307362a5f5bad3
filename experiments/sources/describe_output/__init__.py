"""Parser for the output of ``kafka-consumer-groups.sh --describe``, Kafka 0.9 and later."""
