"""Measure the remedies of docs/remedies.md on random groups with mixed subscriptions.

``python -m benchmarks.remedies --cases 4000`` repairs the results of the sticky and the uniform
assignor on 4,000 groups per family, and prints the share of the gap to the proven optimum
that each remedy closes.
"""

import argparse
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from random import Random
from statistics import mean
from time import process_time

from benchmarks.network_shapes import build_group
from kassay.experiments.comparison.compare import fewest_moves_within, solve_optimum
from kassay.experiments.implementations.callable_server import load_callable
from kassay.experiments.study.families.all_families import FAMILIES
from kassay.reference.assignors import run_assignor
from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.errors import InternalError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import makespan, sum_of_squares

ASSIGNORS = ("sticky", "uniform")
EXAMPLE = Path(__file__).parents[1] / "examples" / "remedies" / "repair.py"
PASTS = {
    "random": ("mixed-join", "mixed-leave", "mixed-resubscribe", "mixed-grow"),
    "own": ("mixed-churn",),
    "neighbours": ("overlap-chains",),
    "rings": ("rings",),
}
"""Families by the origin of the owned partitions: random, or results of the assignor."""
REMEDIES: dict[str, dict[str, int] | None] = {
    "none": None,
    "return only": {"max_transfers": 0},
    "two transfers": {"max_transfers": 2},
    "three transfers": {"max_transfers": 3},
    "ten chains": {"max_chains": 10},
    "no limit": {},
}
"""Arguments of ``repair`` per remedy."""
HEADER = (
    "owned partitions",
    "assignor",
    "remedy",
    "groups",
    "above minimum imbalance",
    "maximum load above minimum",
    "imbalance gap",
    "closed",
    "moves",
    "unnecessary moves",
    "closed",
    "chains",
)
_SUMS = ("groups", "above", "higher", "gap", "moves", "unnecessary", "chains")


@dataclass(frozen=True, slots=True)
class Row:
    """Sums over the groups of one past, for one assignor and one remedy."""

    past: str
    assignor: str
    remedy: str
    sums: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def cells(self, unrepaired: "Row", *, times: bool) -> list[str]:
        """Return the cells of the table; ``unrepaired`` is the row without a remedy."""
        gap_closed, moves_closed = (
            _percentage(unrepaired.sums[name] - self.sums[name], unrepaired.sums[name])
            for name in ("gap", "unnecessary")
        )
        number = {name: f"{self.sums[name]:,}" for name in _SUMS}
        return [
            self.past,
            self.assignor,
            self.remedy,
            *(number[name] for name in ("groups", "above", "higher", "gap")),
            gap_closed,
            *(number[name] for name in ("moves", "unnecessary")),
            moves_closed,
            number["chains"],
            *([f"{1000 * mean(self.seconds):.2f}"] if times else []),
        ]


def measure(past: str, cases: int) -> list[Row]:
    """Run each remedy on the first seeds of the families of a past."""
    repair = load_callable(f"{EXAMPLE}:repair")
    rows = {key: Row(past, *key) for key in product(ASSIGNORS, REMEDIES)}
    for family, seed in product(PASTS[past], range(cases)):
        judge = None
        for assignor in ASSIGNORS:
            group = (
                FAMILIES[family].build(seed, start=assignor) if family in FAMILIES else ring(seed)
            )
            if judge is None or replace(group, id="") != replace(judge.group, id=""):
                judge = _Judge(group)
            started = process_time()
            unrepaired = _assign(group, assignor)
            rows[assignor, "none"].seconds.append(process_time() - started)
            for remedy, limits in REMEDIES.items():
                repaired, chains = unrepaired, 0
                if limits is not None:
                    started = process_time()
                    repaired, chains = repair(group, unrepaired, **limits)
                    rows[assignor, remedy].seconds.append(process_time() - started)
                rows[assignor, remedy].sums.update(judge.sums(repaired), groups=1, chains=chains)
    return list(rows.values())


def ring(seed: int) -> Group:
    """Return 6 to 16 members without owned partitions; each shares a topic with both neighbours."""
    rng = Random(f"rings/{seed}")
    size = rng.randint(6, 16)
    topics = [rng.randint(1, 12) for _ in range(size)]
    return build_group(topics, [[member, (member + 1) % size] for member in range(size)])


def _assign(group: Group, assignor: str) -> Assignment:
    """Return an assignor's result; in a livelock, the first repeated state."""
    result = run_assignor(group, assignor)
    assignment = result.assignment if result.livelock is None else result.livelock.state
    if assignment is None:
        raise InternalError(f"{assignor} fails on {group.id}: {result.failed}")
    return assignment


class _Judge:
    """Proven optimum of a group, and the fewest moves within each imbalance."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.optimum = solve_optimum(group)
        best = self.optimum.assignment
        if best is None or not self.optimum.is_optimal:
            raise InternalError(f"the optimum of {group.id} is not proven")
        self.least_maximum = makespan(best.counts().values())
        self._fewest: dict[int, int | None] = {}

    def sums(self, assignment: Assignment) -> dict[str, int]:
        """Return the moves of an assignment, and its differences from the optimum."""
        loads = assignment.counts().values()
        imbalance, moves = sum_of_squares(loads), movement(self.group, assignment)
        if imbalance not in self._fewest:
            fewest = fewest_moves_within(self.group, imbalance, optimum=self.optimum)
            self._fewest[imbalance] = fewest
        fewest = self._fewest[imbalance]
        if fewest is None:
            raise InternalError(f"the fewest moves of {self.group.id} are not proven")
        gap = imbalance - self.optimum.imbalance.value
        return {
            "above": int(gap > 0),
            "higher": int(makespan(loads) > self.least_maximum),
            "gap": gap,
            "moves": moves,
            "unnecessary": moves - fewest,
        }


def _percentage(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "–"


def main() -> None:
    """Print one table with a row per past, assignor and remedy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=25, help="groups per family")
    parser.add_argument("--past", choices=PASTS, action="append", help="default: all")
    parser.add_argument(
        "--times", action="store_true", help="print the mean processor time per group in ms"
    )
    chosen = parser.parse_args()
    header = [*HEADER, *(["ms"] if chosen.times else [])]
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * 3 + "--:|" * (len(header) - 3))
    for past in chosen.past or PASTS:
        rows = measure(past, chosen.cases)
        unrepaired = {row.assignor: row for row in rows if row.remedy == "none"}
        for row in rows:
            cells = row.cells(unrepaired[row.assignor], times=chosen.times)
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
