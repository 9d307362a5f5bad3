"""Level of all confidence intervals of a report, and p-values adjusted for several tests."""

import math
from collections.abc import Sequence

CONFIDENCE = 0.95
UPPER_QUANTILE = (1 + CONFIDENCE) / 2
"""Probability below the upper end of a confidence interval."""
SIGNIFICANT = 0.05
"""Adjusted p-values below this level are marked."""


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for the number of tests, by Holm's method. NaN stays NaN.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    tests = [index for index, p_value in enumerate(p_values) if not math.isnan(p_value)]
    for rank, index in enumerate(sorted(tests, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(tests) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
