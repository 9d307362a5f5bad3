"""The optimum: the least imbalanced assignment, then the stickiest, with proof."""
