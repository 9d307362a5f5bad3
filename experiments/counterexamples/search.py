"""One case of a hunt: look, and if there is something, shrink it. Pure; Spark runs many."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from kassay.experiments.compare import LIMITS, CaseLimits, solve_optimum
from kassay.experiments.counterexamples.canonical_form import canonical_form, with_canonical_names
from kassay.experiments.counterexamples.exhaustive_search import EXHAUSTIVE, namings
from kassay.experiments.counterexamples.group_size import size_of
from kassay.experiments.counterexamples.random_walk import random_walk
from kassay.experiments.counterexamples.shortcomings import (
    BY_DEGREE,
    NEEDS_OPTIMUM,
    Shortcoming,
    Shortfall,
    shortfall,
)
from kassay.experiments.counterexamples.shrinking import Predicate, shrink
from kassay.experiments.study.case import Case
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import ownership

MAX_ATTEMPTS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What is hunted.

    Parameters
    ----------
    assignor
        Name of Kafka's assignor, or of a custom one.
    shortcoming
        In what way it is to fall short.
    limits
        What each search for an optimum may use up.
    attempts
        Most groups to try while shrinking one.
    wander
        Groups to try, after that, on a random way among groups no larger.
    restarts
        How many such ways, each from where shrinking ended; the smallest group counts.
    """

    assignor: str
    shortcoming: Shortcoming
    limits: CaseLimits = LIMITS
    attempts: int = MAX_ATTEMPTS
    wander: int = 0
    restarts: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """What one case came to. Fields are columns.

    Parameters
    ----------
    case
        Name of the case.
    error
        Why it could not be judged.
    proven
        Whether everything was proven, under every naming tried.
    namings
        Namings of the group tried: all there are in small worlds, else 1.
    short
        Under how many of them the assignor falls short.
    severity
        Greatest severity found, as a fraction; None where it does not fall short.
    kind
        Kind of the group, where it falls short.
    smallest
        The smallest group that it was shrunk to, as JSON.
    smallest_kind
        Kind of that.
    smallest_severity
        Severity there.
    """

    case: str
    error: str | None = None
    proven: bool = True
    namings: int = 0
    short: int = 0
    severity: str | None = None
    kind: str | None = None
    smallest: str | None = None
    smallest_kind: str | None = None
    smallest_severity: str | None = None


def search_case(case: Case, hunt: SearchOptions) -> Counterexample:
    """Judge the group of a case, and shrink it if the assignor falls short.

    Whatever goes wrong is told in the catch: a hunt does not fail for one group.

    Parameters
    ----------
    case
        The case. A small world is judged under each of its namings.
    hunt
        What is hunted.

    Examples
    --------
    >>> from kassay.experiments.study.case import Case
    >>> hunt = SearchOptions(assignor="sticky", shortcoming=Shortcoming.IMBALANCE)
    >>> catch = search_case(Case(family="mixed-fresh", seed=3, assignors=("sticky",)), hunt)
    >>> catch.error, catch.proven, catch.namings
    (None, True, 1)
    """
    try:
        return _chased(case, hunt)
    except Exception as error:  # noqa: BLE001 - whatever fails on one group is a row
        return Counterexample(
            case=case.name, error=f"{type(error).__name__}: {error}", proven=False
        )


def _chased(case: Case, hunt: SearchOptions) -> Counterexample:
    group = case.build()
    named = namings(group) if case.family == EXHAUSTIVE else (group,)
    tried, proven, found = _judged(named, hunt)
    catch = Counterexample(case=case.name, proven=proven, namings=tried, short=len(found))
    if not found:
        return catch
    severity, worst = max(found, key=lambda pair: pair[0])
    smallest, reached = shrink_group(worst, hunt, severity)
    return Counterexample(
        case=case.name,
        proven=proven,
        namings=tried,
        short=len(found),
        severity=str(severity),
        kind=canonical_form(worst),
        smallest=json.dumps(group_document(smallest), ensure_ascii=False, separators=(",", ":")),
        smallest_kind=canonical_form(smallest),
        smallest_severity=str(reached),
    )


def _judged(
    named: Iterable[Group], hunt: SearchOptions
) -> tuple[int, bool, list[tuple[Fraction, Group]]]:
    """Judge one group under several namings, which all have the same optimum."""
    optimum, proven, tried = None, True, 0
    found: list[tuple[Fraction, Group]] = []
    for group in named:
        if optimum is None and hunt.shortcoming in NEEDS_OPTIMUM:
            optimum = solve_optimum(group, limits=hunt.limits)
        judged = shortfall(
            group,
            hunt.assignor,
            shortcoming=hunt.shortcoming,
            optimum=optimum,
            limits=hunt.limits,
        )
        tried += 1
        proven &= judged.proven
        if judged.severity > 0:
            found.append((judged.severity, group))
    return tried, proven, found


def shrink_group(group: Group, hunt: SearchOptions, severity: Fraction) -> tuple[Group, Fraction]:
    """Shrink a group as long as the assignor falls short on it.

    Where the hunt is for how bad it gets, it must stay as bad. Nothing odd comes in:
    claims that do not hold, and subscriptions to topics that do not exist, only go.

    Returns
    -------
    tuple
        The group and the severity on it.
    """
    oddities = _oddities(group)
    least = severity if hunt.shortcoming in BY_DEGREE else None

    def still(smaller: Group) -> bool:
        if _oddities(smaller) > oddities:
            return False
        reached = _severity(smaller, hunt)
        return reached > 0 if least is None else reached >= least

    smallest = _least(group, still, hunt.attempts)
    if hunt.wander:
        ways = [
            _least(
                random_walk(smallest, still, steps=hunt.wander, seed=f"wander/{way}"),
                still,
                hunt.attempts,
            )
            for way in range(hunt.restarts)
        ]
        smallest = min(smallest, *ways, key=size_of)
    return smallest, _severity(smallest, hunt)


def _least(group: Group, still: Predicate, attempts: int) -> Group:
    """Shrink and tidy until nothing is gained."""
    smallest = with_canonical_names(shrink(group, still, attempts=attempts), still)
    while True:
        # Under its new names more may go than under its own.
        smaller = with_canonical_names(shrink(smallest, still, attempts=attempts), still)
        if size_of(smaller) >= size_of(smallest):
            return smallest
        smallest = smaller


def _severity(group: Group, hunt: SearchOptions) -> Fraction:
    return judge(group, hunt).severity


def judge(group: Group, hunt: SearchOptions) -> Shortfall:
    """Judge one group."""
    return shortfall(group, hunt.assignor, shortcoming=hunt.shortcoming, limits=hunt.limits)


def _oddities(group: Group) -> int:
    known = group.topic_table()
    owned = ownership(group)
    return (
        sum(topic not in known for member in group.members for topic in member.subscription)
        + sum(tp.topic not in known for member in group.members for tp in member.owned)
        + len(owned.stale)
        + len(owned.contested)
    )
