"""Import groups: outputs of Kafka's tools and monitoring tools, and running clusters."""
