"""Searches for low maximum loads and few moves of groups with different weights."""
