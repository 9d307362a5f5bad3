"""Study of seeded share groups, Connect clusters and Streams applications, on Spark.

``python -m benchmarks.family_study [--problems N] [--write]`` evaluates N problems per kind, and
writes the tables of docs/results/families.md. Kafka's assignors are the ports.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks import streams_events
from kassay.experiments.comparison.family_comparison import compare_answer
from kassay.experiments.comparison.family_measures import FamilyMeasure
from kassay.experiments.implementations.runner import run_on_document
from kassay.experiments.planning.families.connect_forecast import forecast_connect
from kassay.experiments.spark.arrow_map import Row, map_rows
from kassay.experiments.spark.session import spark_session
from kassay.reference.documents.family_documents import FamilyDocument, parse_family_document
from kassay.solver.limits import SearchLimits
from tools.insert_published_numbers import replace_numbers

PAGE = Path(__file__).parents[1] / "docs" / "results" / "families.md"
PLACE, RESTARTS = "family-study", "connect-restarts"
DOWNTIME_MS = 30_000
_DELAYS = (0, 20_000, 40_000, 300_000)
_SCHEMA = pa.schema(
    [
        ("problems", pa.string()),
        ("seed", pa.int64()),
        ("measure", pa.string()),
        ("value", pa.int64()),
        ("minimum", pa.int64()),
        ("is_proven", pa.bool_()),
    ]
)
_SHOWN = {
    "slots": "pairs of a partition and a member",
    "sum_of_squares": "sum of squared loads",
    "movement": "moves",
    "task_topic_spread": "tasks per connector and worker, squared",
    "task_sum_of_squares": "tasks per worker, squared",
    "task_movement": "moves of tasks",
    "state_moves": "state moves",
}
"""Measures of the table, in words."""


def share_group(rng: Random, *, is_mixed: bool) -> FamilyDocument:
    """Return a share group of 2 to 8 members, after a member has joined or left."""
    topics = {f"t{number}": rng.randint(1, 12) for number in range(rng.randint(1, 4))}
    members = []
    for number in range(rng.randint(3, 9)):
        names = rng.sample(sorted(topics), rng.randint(1, len(topics))) if is_mixed else topics
        members.append({"id": f"m{number}", "topics": sorted(names), "owned": []})
    event = rng.choice(("join", "leave", "start"))
    if event != "start":
        present = members[1:] if event == "join" else members
        answer: Any = run_on_document(_share(topics, present), "share").answer
        members = [
            {**member, "owned": answer["members"].get(member["id"], [])}
            for member in (members if event == "join" else members[1:])
        ]
    return _share(topics, members)


def _share(topics: Mapping[str, int], members: Sequence[object]) -> FamilyDocument:
    content = {"kind": "share", "topics": topics, "members": members}
    return parse_family_document(content, kind=None)


def cluster(rng: Random, event: str) -> FamilyDocument:
    """Return a Connect cluster of 2 to 6 workers, before and after a worker joins or leaves."""
    workers = [f"w{number}" for number in range(rng.randint(2, 6))]
    connectors = {f"c{number}": rng.randint(1, 10) for number in range(rng.randint(1, 4))}
    after = [*workers, "new"] if event == "join" else workers[1:]
    steps = [{"workers": one, "connectors": connectors} for one in (workers, after)]
    return parse_family_document({"kind": "connect", "steps": steps}, kind=None)


def _compared(document: FamilyDocument, port: str) -> Iterator[FamilyMeasure]:
    answer: Any = run_on_document(document, port).answer
    yield from compare_answer(document, answer, limits=SearchLimits(time=10))[-1].measures


def _streams(rng: Random, event: str) -> Iterator[FamilyMeasure]:
    document = streams_events.after(event, streams_events.application(rng, standbys=0), rng)
    [result] = streams_events.measure(document, [streams_events.HIGH_AVAILABILITY])
    moves, fewest = result.event.state_moves, result.fewest
    yield FamilyMeasure("state_moves", moves, fewest, fewest)


def _restarts(rng: Random) -> Iterator[FamilyMeasure]:
    """Yield the stopped time and the task starts of a restart, per delay and stopped task."""
    found = forecast_connect(cluster(rng, "join"), downtime_ms=DOWNTIME_MS, pause_ms=DOWNTIME_MS)
    for one in found.settings:
        restart = one.restart
        yield FamilyMeasure(f"{one.delay_ms} ms, stopped", restart.stopped_ms_per_task, None, None)
        yield FamilyMeasure(f"{one.delay_ms} ms, starts", restart.task_starts, None, None)


PROBLEMS: Mapping[str, Callable[[Random], Iterator[FamilyMeasure]]] = {
    "share, equal subscriptions": lambda rng: _compared(share_group(rng, is_mixed=False), "share"),
    "share, mixed subscriptions": lambda rng: _compared(share_group(rng, is_mixed=True), "share"),
    "connect, join": lambda rng: _compared(cluster(rng, "join"), "connect-incremental"),
    "connect, leave": lambda rng: _compared(cluster(rng, "leave"), "connect-incremental"),
    "streams, join": partial(_streams, event="join"),
    "streams, leave": partial(_streams, event="leave"),
    RESTARTS: _restarts,
}
"""Measures of one problem, by the name of its kind."""


def evaluate(problem: Row) -> Iterator[dict[str, object]]:
    """Yield the rows of one problem, given by its kind and its seed."""
    for one in PROBLEMS[problem["problems"]](Random(problem["seed"])):
        if one.minimum is not None or problem["problems"] == RESTARTS:
            yield {
                **problem,
                "measure": one.name,
                "value": one.value,
                "minimum": one.minimum,
                "is_proven": one.minimum is not None and one.minimum == one.bound,
            }


def _evaluate_all(problems: Iterable[Row]) -> Iterator[dict[str, object]]:
    for problem in problems:
        yield from evaluate(problem)


def evaluate_on_spark(spark: SparkSession, number: int) -> DataFrame:
    """Evaluate the seeds below a number for each kind of problems."""
    problems = [(name, seed) for name in PROBLEMS for seed in range(number)]
    frame = spark.createDataFrame(problems, "problems string, seed long")
    return map_rows(frame.repartition(8, "problems", "seed"), _evaluate_all, _SCHEMA)


def tables(rows: Iterable[Row]) -> dict[str, str]:
    """Aggregate the rows to the tables of the page, by the name of their place."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["problems"], row["measure"]), []).append(row)
    lines = [
        "| problems | measure | number | above the minimum | mean excess | greatest |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for name in PROBLEMS:
        for measure, words in _SHOWN.items():
            listed = found.get((name, measure), ())
            excess = [row["value"] - row["minimum"] for row in listed]
            above = [one for one in excess if one > 0]
            if listed:
                cells = (
                    *(name, words, len(listed), f"{len(above)} ({len(above) / len(listed):.0%})"),
                    *(f"{mean(above):.1f}" if above else "0", max(above, default=0)),
                )
                lines.append(f"| {' | '.join(map(str, cells))} |")
    restarts = ["| delay | stopped seconds per task | task starts |", "|---|--:|--:|"]
    for delay in _DELAYS:
        stopped, starts = (
            mean(row["value"] for row in found[RESTARTS, f"{delay} ms, {name}"])
            for name in ("stopped", "starts")
        )
        restarts.append(f"| {delay / 1000:g} s | {stopped / 1000:.0f} | {starts:.1f} |")
    return {PLACE: "\n".join(lines) + "\n", RESTARTS: "\n".join(restarts) + "\n"}


def main() -> None:
    """Print the tables, or write them to docs/results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=100, help="number of problems per kind")
    parser.add_argument("--write", action="store_true", help=f"write the tables to {PAGE.name}")
    options = parser.parse_args()
    with spark_session(quiet=True) as spark:
        frame = evaluate_on_spark(spark, options.problems)
        found = tables(row.asDict() for row in frame.toLocalIterator())
    text = PAGE.read_text(encoding="utf-8")
    for place, table in found.items():
        print(table)
        text = replace_numbers(text, table, where=PAGE.name, place=place)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
