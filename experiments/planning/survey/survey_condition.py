"""Conditions such as ``gap>10%`` on a surveyed group."""

import operator
import re
from dataclasses import dataclass
from fractions import Fraction

from kassay.experiments.planning.survey.survey_result import SurveyedGroup
from kassay.reference.model.errors import UsageError

QUANTITIES = (
    *("gap", "maximum-load", "spread", "idle", "hot", "moves", "placed"),
    "unnecessary-moves",
)
"""Names of the quantities of a group that a condition can compare."""
_COMPARISONS = {">": operator.gt, ">=": operator.ge}
_CONDITION = re.compile(r"\s*([a-z-]+)\s*(>=|>)\s*(\d+(?:\.\d+)?)\s*(%?)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition on one quantity of a surveyed group.

    Examples
    --------
    >>> parse_condition("gap > 10%")
    Condition(text='gap > 10%', quantity='gap', comparison='>', limit=Fraction(1, 10))
    """

    text: str
    quantity: str
    comparison: str
    limit: Fraction

    def is_met_by(self, group: SurveyedGroup) -> bool:
        """Return whether the group's quantity is above the limit or, for ``>=``, equal to it."""
        value = group.values()[self.quantity.replace("-", "_")] or 0
        return bool(_COMPARISONS[self.comparison](value, self.limit))


def parse_condition(text: str) -> Condition:
    """Parse a condition. The limit of the gap is a percentage, all other limits are numbers."""
    match = _CONDITION.fullmatch(text)
    if match is None or match[1] not in QUANTITIES:
        raise UsageError(
            f"--fail-on must be QUANTITY>LIMIT or QUANTITY>=LIMIT, where QUANTITY is one of "
            f"{', '.join(QUANTITIES)}, got {text!r}"
        )
    quantity, comparison, number, percent = match.groups()
    if bool(percent) is not (quantity == "gap"):
        rule = "must be a percentage" if quantity == "gap" else "must not be a percentage"
        raise UsageError(f"--fail-on: the limit of {quantity} {rule}, got {text!r}")
    limit = Fraction(number) / (100 if percent else 1)
    return Condition(text.strip(), quantity, comparison, limit)
