"""What ``__consumer_offsets`` remembers: records decoded, generations rebuilt and judged."""
