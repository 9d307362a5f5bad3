"""Import groups: outputs of Kafka's tools and monitoring tools, and running clusters.

Parsers do not guess. They raise `InputError` with the place of the error for input that is cut,
damaged, contradictory or of an unknown form.
"""
