"""Random small groups with an objective, and the decision of brute force on assignments."""

import random
from dataclasses import dataclass, replace
from functools import cached_property

from kassay import Group, Imbalance, Measure, Movement, Tolerance
from kassay.experiments.cli.commands.verify import Question
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import group_constraints
from kassay.solver.objective import FURTHER_LEVELS, Level, default_levels, is_preference
from tests import brute_force
from tests.brute_force import Placement
from tests.solver.random_cases import (
    allows,
    random_constraint,
    random_group,
    random_level,
    value_of,
)

_TOLERANCES = (
    Tolerance(),
    Tolerance(),
    Tolerance(absolute=1),
    Tolerance(relative=0.1),
    Tolerance(relative=0.5),
    Tolerance(relative=2),
)


@dataclass
class Request:
    """A question with its answer by brute force."""

    question: Question

    @cached_property
    def allowed(self) -> list[Placement]:
        """Valid assignments that meet the constraints."""
        group = self.question.group
        rules = (*group_constraints(group), *self.question.constraints)
        return list(filter(allows(group, rules), brute_force.every_placement(group)))

    @cached_property
    def optima(self) -> list[Placement]:
        """Optimal assignments: each level is minimal within the tolerances of earlier ones.

        Preferences do not count.
        """
        group, within = self.question.group, self.allowed
        for level in (one for one in self.question.levels if not is_preference(one)):
            measure = value_of(group, level)
            values = [measure(placement) for placement in within]
            if not values:
                return []
            most = level.tolerance.limit(min(values))
            within = [p for p, value in zip(within, values, strict=True) if value <= most]
        return within

    def is_optimal(self, placement: Placement) -> bool:
        """Return whether an assignment is optimal."""
        return placement in self.optima


def random_request(rng: random.Random) -> Request:
    """Draw a group of up to 3 members and 6 partitions, mostly with the default objective."""
    while True:
        group = random_group(
            rng,
            weighted=rng.random() < 0.6,
            racked=rng.random() < 0.3,
            hosted=rng.random() < 0.3,
            timed=rng.random() < 0.3,
            most=(3, 2, 6),
        )
        if rng.random() < 0.2:
            first, *rest = group.members
            group = replace(group, members=(replace(first, capacity=rng.randint(0, 20)), *rest))
        group = replace(group, id=rng.choice((None, "g", "h")))
        if brute_force.partitions_to_place(group):
            return Request(Question(group, random_levels(rng, group), random_rules(rng, group)))


def random_levels(rng: random.Random, group: Group) -> tuple[Level, ...]:
    """Draw the default levels, those of options of ``kassay solve``, or any."""
    kind = rng.random()
    if kind < 0.4:
        return default_levels(group)
    if kind < 0.75:
        measure = rng.choice(tuple(Measure))
        tolerance = Tolerance() if measure is Measure.LEXIMAX else rng.choice(_TOLERANCES)
        further = rng.sample(list(FURTHER_LEVELS), rng.choice((0, 0, 1, 2)))
        levels = (Imbalance(measure, tolerance), Movement())
        return (*levels, *(FURTHER_LEVELS[name]() for name in further))
    levels = tuple(random_level(rng, group) for _ in range(rng.randint(1, 3)))
    return tuple(
        level
        if getattr(level, "measure", None) is Measure.LEXIMAX
        else replace(level, tolerance=rng.choice(_TOLERANCES))
        for level in levels
    )


def random_rules(rng: random.Random, group: Group) -> tuple[Constraint, ...]:
    """Draw no constraint, or up to two."""
    return tuple(random_constraint(rng, group) for _ in range(rng.choice((0, 0, 0, 1, 2))))
