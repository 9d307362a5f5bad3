"""The gallery: what was caught, each kind once, judged again and explained."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction

from kassay.experiments.compare import solve_optimum
from kassay.experiments.counterexamples.canonical_form import short_name
from kassay.experiments.counterexamples.group_size import size_of
from kassay.experiments.counterexamples.search import Counterexample, SearchOptions, judge
from kassay.experiments.counterexamples.shortcomings import BY_DEGREE, Shortcoming
from kassay.experiments.implementations.runner import run
from kassay.reference.documents.json_codec import assignment_document, group_document, parse_group
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import LivelockError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import leximax, loads, movement
from kassay.solver.improvement.explanation import explain

_SHOWN_ORIGINS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryEntry:
    """A smallest group on which an assignor falls short.

    Parameters
    ----------
    group
        The group; its id is its place in the gallery.
    kind
        Short name of its kind, the same in every gallery.
    severity
        See `kassay.experiments.counterexamples.Shortfall`.
    times
        How many of the cases shrank to this kind.
    origins
        Some of them.
    verdict
        What the assignor does with it, in words.
    given
        What the assignor gave; the state that repeats where it never ends; None where it
        has no valid answer.
    optimum
        An optimum.
    steps
        What would have made the assignment optimal: chains of transfers, in words.
    """

    group: Group
    kind: str
    severity: Fraction
    times: int
    origins: tuple[str, ...]
    verdict: str
    given: Assignment | None
    optimum: Assignment | None
    steps: tuple[str, ...]

    def document(self) -> dict[str, object]:
        """Return the piece as JSON."""
        return {
            "id": self.group.id,
            "kind": self.kind,
            "severity": str(self.severity),
            "verdict": self.verdict,
            **size_of(self.group)._asdict(),
            "times": self.times,
            "origins": list(self.origins),
            "given": _answer(self.group, self.given),
            "optimum": _answer(self.group, self.optimum),
            "explanation": list(self.steps),
            "group": group_document(self.group),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Gallery:
    """Everything that a hunt found.

    Parameters
    ----------
    hunt
        What was hunted.
    counts
        ``cases``: groups judged. ``short``: those on which the assignor falls short under
        some naming. ``kinds``: kinds of these. ``namings``, ``namings_short``: the same
        counted naming by naming. ``smallest``: kinds left after shrinking. ``unproven``,
        ``errors``: what is in none of these.
    by_size
        (members, partitions, kinds) of the smallest.
    pieces
        The smallest groups, one of each kind: the worst first where the hunt is for how
        bad it gets, else the smallest first.
    errors
        The first errors, by case.
    """

    hunt: SearchOptions
    counts: dict[str, int]
    by_size: tuple[tuple[int, int, int], ...]
    pieces: tuple[GalleryEntry, ...]
    errors: tuple[tuple[str, str], ...]

    def document(self) -> dict[str, object]:
        """Return the gallery as JSON."""
        return {
            "hunt": asdict(self.hunt) | {"shortcoming": str(self.hunt.shortcoming)},
            "counts": self.counts,
            "by_size": [
                {"members": members, "partitions": partitions, "kinds": kinds}
                for members, partitions, kinds in self.by_size
            ],
            "pieces": [piece.document() for piece in self.pieces],
            "errors": [{"case": case, "error": error} for case, error in self.errors],
        }


def gallery(catches: Iterable[Counterexample], hunt: SearchOptions) -> Gallery:
    """Hang what a hunt caught: each kind once, whatever the order it came in.

    Examples
    --------
    >>> from kassay.experiments.counterexamples.search import search_case
    >>> from kassay.experiments.counterexamples.exhaustive_search import exhaustive_cases
    >>> hunt = SearchOptions(assignor="sticky", shortcoming=Shortcoming.IMBALANCE)
    >>> cases = exhaustive_cases(members=2, partitions=2, assignor="sticky")
    >>> gallery([search_case(case, hunt) for case in cases], hunt).counts["short"]
    0
    """
    caught = sorted(catches, key=lambda catch: _natural(catch.case))
    hits = [catch for catch in caught if catch.smallest is not None]
    kinds: dict[str, list[Counterexample]] = {}
    for catch in hits:
        kinds.setdefault(str(catch.smallest_kind), []).append(catch)
    found = [(_group(same[0]), kind, same) for kind, same in kinds.items()]
    worst_first = hunt.shortcoming in BY_DEGREE
    found.sort(
        key=lambda item: (
            -Fraction(str(item[2][0].smallest_severity)) if worst_first else 0,
            size_of(item[0]),
            item[1],
        )
    )
    sizes = Counter((len(group.members), group.partition_count) for group, _, _ in found)
    return Gallery(
        hunt=hunt,
        counts=_counts(caught, hits, len(kinds)),
        by_size=tuple((*size, sizes[size]) for size in sorted(sizes)),
        pieces=tuple(
            _piece(replace(group, id=_id(hunt, place)), kind, same, hunt)
            for place, (group, kind, same) in enumerate(found, start=1)
        ),
        errors=tuple((c.case, c.error) for c in caught if c.error is not None)[:20],
    )


def _counts(
    caught: Sequence[Counterexample], hits: Sequence[Counterexample], smallest: int
) -> dict[str, int]:
    return {
        "cases": len(caught),
        "short": len(hits),
        "kinds": len({catch.kind for catch in hits}),
        "namings": sum(catch.namings for catch in caught),
        "namings_short": sum(catch.short for catch in caught),
        "smallest": smallest,
        "unproven": sum(not catch.proven and catch.error is None for catch in caught),
        "errors": sum(catch.error is not None for catch in caught),
    }


def _group(catch: Counterexample) -> Group:
    return parse_group(json.loads(str(catch.smallest)), where=catch.case)


def _id(hunt: SearchOptions, place: int) -> str:
    return f"{hunt.assignor}/{hunt.shortcoming}/{place}"


def _piece(
    group: Group, kind: str, same: Sequence[Counterexample], hunt: SearchOptions
) -> GalleryEntry:
    judged = judge(group, hunt)
    given = judged.settled.assignment
    steps: tuple[str, ...] = ()
    if given is not None and not group.is_weighted:
        steps = tuple(str(step) for step in explain(group, given))
    verdict = run(group, hunt.assignor) if given is None else None
    if verdict is not None and isinstance(verdict.livelock, LivelockError):
        given = verdict.livelock.state
    return GalleryEntry(
        group=group,
        kind=short_name(kind),
        severity=judged.severity,
        times=len(same),
        origins=tuple(catch.case for catch in same[:_SHOWN_ORIGINS]),
        verdict=_words(hunt.shortcoming, judged.severity, judged.settled.detail),
        given=given,
        optimum=solve_optimum(group, limits=hunt.limits).assignment,
        steps=steps,
    )


def _words(shortcoming: Shortcoming, severity: Fraction, detail: str | None) -> str:
    match shortcoming:
        case Shortcoming.IMBALANCE:
            return f"its imbalance is {severity} above the least"
        case Shortcoming.MOVES:
            return f"it makes {severity} unnecessary moves per partition"
        case Shortcoming.RATIO:
            return f"its fullest member has {severity + 1} times the least possible"
        case Shortcoming.LIVELOCK:
            return f"it never ends: {detail}"
        case Shortcoming.FAILURE:
            return f"it has no valid answer: {detail}"


def _answer(group: Group, assignment: Assignment | None) -> dict[str, object] | None:
    if assignment is None:
        return None
    return {
        "loads": list(leximax(loads(group, assignment).values())),
        "moves": movement(group, assignment),
        "assignment": assignment_document(assignment),
    }


def _natural(case: str) -> tuple[str, int, str]:
    family, _, rest = case.partition("/")
    seed, _, start = rest.partition("@")
    return family, int(seed), start
