"""History of consumer groups, reconstructed from the records of ``__consumer_offsets``."""
