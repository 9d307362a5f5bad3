"""State moves and probing rebalances of Streams applications after an event.

``python -m benchmarks.streams_events --applications 150`` prints a table. All subtopologies are
stateful, each process has two threads, and the application is stable under high availability before
the event. The state of a warm-up task is complete at the next probing rebalance.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean
from uuid import UUID

from kassay.experiments.comparison.streams_application import read_application
from kassay.experiments.implementations.callable_server import load_callable
from kassay.experiments.implementations.convergence import Ending
from kassay.experiments.implementations.streams_and_connect_events import (
    Assign,
    StreamsEvent,
    run_application_until_stable,
)
from kassay.reference.documents.application_events import (
    join_process,
    leave_process,
    restart_process,
)
from kassay.reference.documents.family_documents import (
    FamilyDocument,
    Kind,
    parse_family_document,
)
from kassay.reference.model.metrics import sum_of_squares
from kassay.solver.solve import solve
from tools.insert_published_numbers import replace_numbers

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "remedies" / "streams.py"
PAGE = ROOT / "docs" / "results" / "streams-events.md"
PLACE = "streams-events"
THREADS = 2
WARMUPS = 2
INTERVAL_MINUTES = 10
HIGH_AVAILABILITY = "streams-high-availability"
ASSIGNORS: Mapping[str, str | Assign] = {
    HIGH_AVAILABILITY: HIGH_AVAILABILITY,
    "remedy, active tasks": load_callable(f"{EXAMPLE}:assign_active"),
    "remedy": load_callable(f"{EXAMPLE}:assign"),
}
EVENTS = ("join", "leave", "restart")
HEADER = (
    "| event | standbys | assignor | rebalances (max) | probing minutes | at least | state moves"
    " | fewest | applications above |\n|---|--:|---|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True, slots=True)
class Result:
    """An event of one application, and the fewest state moves with the lowest loads."""

    event: StreamsEvent
    fewest: int


def application(rng: Random, *, standbys: int) -> FamilyDocument:
    """Return a stable application of 2 to 6 processes and 1 to 3 subtopologies."""
    subtopologies = {}
    for number in range(rng.randint(1, 3)):
        partitions = rng.randint(3, 12)
        subtopologies[str(number)] = {
            "partitions": partitions,
            "stateful": True,
            "end_offsets": [50_000] * partitions,
        }
    processes = [{"id": _uuid(rng), "threads": THREADS} for _ in range(rng.randint(2, 6))]
    document = {
        "kind": "streams",
        "subtopologies": subtopologies,
        "config": {"num_standby_replicas": standbys, "max_warmup_replicas": WARMUPS},
        "processes": processes,
    }
    fresh = parse_family_document(document, kind=Kind.STREAMS)
    return run_application_until_stable(fresh, HIGH_AVAILABILITY).application


def after(event: str, document: FamilyDocument, rng: Random) -> FamilyDocument:
    """Apply an event to an application."""
    processes: Sequence[Mapping[str, str]] = document.content["processes"]  # type: ignore[assignment]
    chosen = rng.choice(processes)["id"]
    changes: Mapping[str, Callable[[], FamilyDocument]] = {
        "join": lambda: join_process(document, _uuid(rng), threads=THREADS),
        "leave": lambda: leave_process(document, chosen),
        "restart": lambda: restart_process(document, chosen),
    }
    return changes[event]()


def measure(document: FamilyDocument, assignors: Iterable[str | Assign]) -> list[Result]:
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


def rows(applications: int, assignors: Mapping[str, str | Assign]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield HEADER
    for event in EVENTS:
        for standbys in (0, 1):
            results = []
            for seed in range(applications):
                rng = Random(seed)
                changed = after(event, application(rng, standbys=standbys), rng)
                results.append(measure(changed, assignors.values()))
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


def _uuid(rng: Random) -> str:
    return str(UUID(int=rng.getrandbits(128)))


def main() -> None:
    """Print the table, or write it to docs/results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--applications", type=int, default=150, help="number of applications")
    parser.add_argument(
        "--assignor", action="append", default=[], help="kafka-streams[@VERSION]:ASSIGNOR, too"
    )
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.name}")
    arguments = parser.parse_args()
    assignors = {**ASSIGNORS, **{name: name for name in arguments.assignor}}
    table = rows(arguments.applications, assignors)
    if not arguments.write:
        for line in table:
            print(line, flush=True)
        return
    text = "\n".join(table) + "\n"
    old = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_numbers(old, text, where=PAGE.name, place=PLACE), encoding="utf-8")


if __name__ == "__main__":
    main()
