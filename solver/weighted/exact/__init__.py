"""Exact methods for small groups with different weights."""
