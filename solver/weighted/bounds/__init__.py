"""Bounds on the moves of groups with different weights, by column generation."""
