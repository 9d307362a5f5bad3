"""Real groups in: what Kafka's tools print, as group documents."""
