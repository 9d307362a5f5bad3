"""Compare plans from one weight per partition with plans from weights per window.

``python -m benchmarks.traffic DIRECTORY`` reads files of traffic, and prints the table of
docs/results/traffic.md. Each file has ``cycle_windows`` and, per topic, the weights of its
partitions in consecutive windows; ``cycle_windows`` windows are a day. The groups have 3, 6 and 12
partitions per member, and start with the assignment of ``range``.

``python -m benchmarks.traffic DIRECTORY FILE TOPIC`` prints the document of a group with the first
two weeks of a topic and 6 partitions per member, for ``kassay plan``.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import mean, median

from kassay import assign, solve
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.group import Group, Member, Topic, Windows
from kassay.reference.model.load_metrics import Measure, measures
from kassay.solver.counting_bounds import peak_bound
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import build_problem

RATIOS = (3, 6, 12)
"""Partitions per member."""
DAYS = (9, 12)
"""Numbers of the planned days. The week before is recorded, and the same day a week later."""
BOOTSTRAPS = 1_000
SOURCES = ("range", "a random window", "the peak window", "the day's total", "the day", "the week")


@dataclass(frozen=True)
class Case:
    """A topic with a number of members, and its planned day."""

    key: str
    rows: list[list[int]]
    per_day: int
    day: int
    members: int

    def group(self, windows: slice, owned: Assignment | None = None) -> Group:
        """Return the group with the weights of some windows."""
        topic = Topic("t", len(self.rows), profiles=tuple(tuple(row[windows]) for row in self.rows))
        names = [f"m{at:03}" for at in range(self.members)]
        held = {} if owned is None else owned
        members = (Member(name, ("t",), owned=held.get(name, ()), generation=1) for name in names)
        return Group((topic,), tuple(members))

    def windows(self, days: float, last: int) -> slice:
        """Return the windows of some days before the end of day ``last``."""
        end = self.per_day * (last + 1)
        return slice(round(end - days * self.per_day), end)


def cases(directory: Path) -> Iterator[Case]:
    """Yield the cases of all files with at least three weeks."""
    for path in sorted(directory.glob("*.json")):
        document = json.loads(path.read_text())
        per_day = document["cycle_windows"]
        for name, topic in document["topics"].items():
            rows = topic["weights"]
            key = f"{document['id']}: {name}"
            for day in DAYS:
                if len(rows[0]) < per_day * (day + 8):
                    continue
                for ratio in RATIOS:
                    if len(rows) // ratio >= 2:
                        yield Case(key, rows, per_day, day, len(rows) // ratio)


def ratio(group: Group, assignment: Assignment) -> float:
    """Return the peak of an assignment, divided by its lower bound."""
    problem = build_problem(group)
    bound = peak_bound(problem, problem.member_units).value
    return measures(group, assignment)[Measure.MAKESPAN] / max(bound, 1)


def group_of_two_weeks(path: Path, name: str) -> str:
    """Return the document of a group that consumes a topic for two weeks."""
    document = json.loads(path.read_text())
    rows, per_day = document["topics"][name]["weights"], document["cycle_windows"]
    case = Case(name, rows, per_day, 13, len(rows) // 6)
    owned = assign(case.group(case.windows(14, 13)), "range")
    windows = Windows(seconds=document["window_seconds"])
    group = replace(case.group(case.windows(14, 13), owned), id=name, windows=windows)
    return json.dumps(group_document(group))


def planned_groups(case: Case, owned: Assignment) -> Iterator[Group]:
    """Yield the group with the weights of each source but the first."""
    day = case.group(case.windows(1, case.day), owned)
    totals = [sum(column) for column in zip(*day.topics[0].profiles or (), strict=True)]
    start = case.windows(1, case.day).start
    for at in (Random(case.day).randrange(len(totals)), totals.index(max(totals))):
        yield case.group(slice(start + at, start + at + 1), owned)
    sums = [sum(row[case.windows(1, case.day)]) for row in case.rows]
    total = Topic("t", len(sums), weights=tuple(sums))
    yield Group((total,), day.members)
    yield day
    yield case.group(case.windows(7, case.day), owned)


def examine(case: Case) -> list[tuple[float, float, int]]:
    """Return, per source of the plan, the ratio on the day and a week later, and the moves."""
    owned = assign(case.group(case.windows(1, case.day)), "range")
    same, later = (case.group(case.windows(1, day), owned) for day in (case.day, case.day + 7))
    found = [owned]
    for group in planned_groups(case, owned):
        solution = solve(group, limits=SearchLimits(work=3))
        found.append(solution.assignment or owned)
    return [(ratio(same, each), ratio(later, each), movement(same, each)) for each in found]


def interval(values: list[float]) -> str:
    """Return the median with an interval of 95% by bootstrapping."""
    rng = Random(0)
    medians = sorted(median(rng.choices(values, k=len(values))) for _ in range(BOOTSTRAPS))
    low, high = medians[BOOTSTRAPS // 40], medians[-BOOTSTRAPS // 40]
    return f"{median(values):.2f} ({low:.2f}–{high:.2f})"


def main(directory: Path) -> None:
    """Print the tables of all cases, and of each topic."""
    found: dict[str, list[list[tuple[float, float, int]]]] = {}
    for case in cases(directory):
        found.setdefault(case.key, []).append(examine(case))
        print(case.key, case.day, case.members, found[case.key][-1], file=sys.stderr, flush=True)
    every = [case for each in found.values() for case in each]
    print(f"{len(every)} cases of {len(found)} topics\n")
    print("| plan from | same day | within 2% | worse than range | a week later | moves |")
    print("|---|--:|--:|--:|--:|--:|")
    for at, name in enumerate(SOURCES):
        rows = [case[at] for case in every]
        worse = sum(case[at][0] > case[0][0] for case in every)
        near = sum(row[0] <= 1.02 for row in rows)
        same, later = (interval([row[part] for row in rows]) for part in (0, 1))
        print(f"| {name} | {same} | {near} | {worse} | {later} | {median(r[2] for r in rows):g} |")
    print("\n| topic | cases | range | the day | a week later: range | the week |")
    print("|---|--:|--:|--:|--:|--:|")
    for key, each in found.items():
        means = (
            mean(case[at][part] for case in each) for at, part in ((0, 0), (4, 0), (0, 1), (5, 1))
        )
        print(f"| {key} | {len(each)} | " + " | ".join(f"{value:.2f}" for value in means) + " |")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(group_of_two_weeks(Path(sys.argv[1], f"{sys.argv[2]}.json"), sys.argv[3]))
    else:
        main(Path(sys.argv[1]))
