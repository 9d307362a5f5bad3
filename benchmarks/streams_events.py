"""State moves and probing rebalances of Streams applications after an event.

``python -m benchmarks.streams_events --applications 150`` prints a table for the applications of
`StreamsApplications`. The state of a warm-up task is complete at the next probing rebalance.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from kassay.experiments.implementations.callable_server import load_callable
from kassay.experiments.implementations.run_assignor import Ending
from kassay.experiments.kinds.streams_comparison import read_application
from kassay.experiments.kinds.streams_forecast import (
    Assign,
    StreamsEvent,
    compare_stable_application,
    run_application_until_stable,
)
from kassay.experiments.study.families.random_documents import (
    HIGH_AVAILABILITY,
    JOIN,
    LEAVE,
    RESTART,
    WARMUPS,
    StreamsApplications,
)
from kassay.reference.documents.files import write_text
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.model.load_metrics import sum_of_squares
from kassay.solver.limits import SearchLimits
from kassay.solver.solve import solve
from tools.insert_published_numbers import replace_numbers

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "remedies" / "streams.py"
PAGE = ROOT / "docs" / "results" / "streams-events.md"
PLACE, LIBRARIES_PLACE = "streams-events", "streams-events-libraries"
INTERVAL_MINUTES = 10
ASSIGNORS: Mapping[str, str | Assign] = {
    HIGH_AVAILABILITY: HIGH_AVAILABILITY,
    "remedy, active tasks": load_callable(f"{EXAMPLE}:assign_active"),
    "remedy": load_callable(f"{EXAMPLE}:assign"),
}
EVENTS = (JOIN, LEAVE, RESTART)
HEADER = (
    "| event | standbys | assignor | rebalances (max) | probing minutes | at least | state moves"
    " | fewest | applications above |\n|---|--:|---|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True, slots=True)
class Result:
    """An event of one application, and the fewest state moves with the lowest loads."""

    event: StreamsEvent
    fewest: int


def measure(document: KindDocument, assignors: Iterable[str | Assign]) -> list[Result]:
    """Run each assignor until the application is stable, and compare its end with the optimum.

    Raises
    ------
    ValueError
        If the rebalances do not end, the loads are not the lowest, or the optimum is not proven.
    """
    application = read_application(document)
    state = {process.id: process.state for process in application.processes}
    # All processes have equal numbers of threads.
    best = solve(
        application.place_group(application.topics, state), levels=("sum_of_squares", "movement")
    )
    results = []
    for assignor in assignors:
        event = run_application_until_stable(document, assignor)
        loads = [len(one["active"]) for one in event.application.content["processes"]]  # type: ignore[attr-defined]
        lowest = best.is_optimal and sum_of_squares(loads) == best.level("sum_of_squares").value
        if event.ending is not Ending.OK or not lowest:
            raise ValueError(f"{assignor}: {event.ending}, {loads}, {best.levels}")
        results.append(Result(event, best.level("movement").value))
    return results


def measure_libraries(document: KindDocument, assignors: Iterable[str]) -> list[Result]:
    """Run each assignor, and find the fewest state moves with the tasks per process of its end.

    Raises
    ------
    ValueError
        If the rebalances do not end, the loads of the threads are not the lowest, or the fewest
        moves are not proven.
    """
    results = []
    for assignor in assignors:
        event = run_application_until_stable(document, assignor)
        compared = compare_stable_application(document, event, SearchLimits())
        found = {one.name: one for one in compared.measures}
        loads, moves = found["active_sum_of_squares"], found["state_moves"]
        if event.ending is not Ending.OK or loads.value != loads.bound or moves.minimum is None:
            raise ValueError(f"{assignor}: {event.ending}, {loads}, {moves}")
        results.append(Result(event, moves.minimum))
    return results


def rows(applications: int, assignors: Mapping[str, str | Assign]) -> Iterator[str]:
    """Yield the lines of the table."""
    judge: Any = measure if assignors is ASSIGNORS else measure_libraries
    yield HEADER
    for event in EVENTS:
        for standbys in (0, 1):
            family = StreamsApplications(name=event, event=event, standbys=standbys)
            results = [
                judge(family.document(seed), assignors.values()) for seed in range(applications)
            ]
            for name, column in zip(assignors, zip(*results, strict=True), strict=True):
                yield _row((event, standbys, name), column)


def _row(labels: tuple[object, ...], results: Sequence[Result]) -> str:
    events = [one.event for one in results]
    cells = [
        *map(str, labels),
        f"{mean(one.rebalances for one in events):.1f} ({max(one.rebalances for one in events)})",
        f"{mean(one.probing_ms for one in events) / 60_000:.0f}",
        f"{INTERVAL_MINUTES * mean(-(-one.fewest // WARMUPS) for one in results):.0f}",
        f"{mean(one.state_moves for one in events):.2f}",
        f"{mean(one.fewest for one in results):.2f}",
        str(sum(one.event.state_moves > one.fewest for one in results)),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, or write it to docs/results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--applications", type=int, default=150, help="number of applications")
    parser.add_argument(
        "--assignor",
        action="append",
        default=[],
        help="kafka-streams[@VERSION]:ASSIGNOR instead; has a table of its own",
    )
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.name}")
    arguments = parser.parse_args()
    assignors = {name: name for name in arguments.assignor} or ASSIGNORS
    table = rows(arguments.applications, assignors)
    if not arguments.write:
        for line in table:
            print(line, flush=True)
        return
    text = "\n".join(table) + "\n"
    place = LIBRARIES_PLACE if arguments.assignor else PLACE
    old = PAGE.read_text(encoding="utf-8")
    write_text(PAGE, replace_numbers(old, text, where=PAGE.name, place=place))


if __name__ == "__main__":
    main()
