"""Compare figures on recorded answers for other kinds of groups with an independent evaluation.

``python -m benchmarks.recorded_answers DIRECTORY --write`` writes a table. The files in the
directory are named ``KIND@VERSION.jsonl.gz``, and have one problem and its answer per line. They
are a part of the problems of the independent evaluation, which compares answers with minimum-cost
flows of its own. A share of it should lie in the 95% interval of the recorded answers.
"""

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kassay.experiments.kinds.group_kind import KindComparison
from kassay.experiments.kinds.registry import KINDS
from kassay.experiments.kinds.streams_comparison import Application, read_answer, read_application
from kassay.experiments.report.study_tables import Proportion
from kassay.reference.documents.files import write_text
from kassay.reference.documents.kind_documents import Kind, KindDocument, parse_kind_document
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.load_metrics import spread
from kassay.reference.model.topic_partitions import TopicPartition as Task
from kassay.solver.certificate.certificate import value_of
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import requested_levels
from kassay.solver.solve import solve
from tools.insert_published_numbers import replace_numbers

PAGE = Path(__file__).parents[1] / "docs" / "results" / "kinds.md"
PLACE = "recorded-answers"
HEADER = """\
| answers | above the minimum, or true | independent | recorded answers | agrees |
|---|---|--:|--:|---|"""
_PROCESS_LOADS = "active tasks of processes, squared, per thread"
_STATEFUL_LOADS = "the same of stateful tasks"
_CLASSIC = (
    # shares: state_moves without and with a rack strategy, then loads of processes
    ("high-availability", 0 / 227, 0 / 85, 0.30, 0.22),
    ("sticky", 24 / 227, 10 / 85, 0.21, 0.20),
    ("legacy-sticky", 29 / 227, 13 / 85, 0.18, 0.18),
    ("fallback-prior", 2 / 227, 1 / 85, 0.30, 0.28),
)
INDEPENDENT: dict[tuple[str, str], float] = {
    ("share, equal subscriptions", "sum_of_squares"): 0 / 298,
    ("share, equal subscriptions", "slots"): 55 / 298,
    ("share, equal subscriptions", "movement"): 16 / 201,
    ("share, mixed subscriptions", "sum_of_squares"): 84 / 122,
    ("share, mixed subscriptions", "slots"): 80 / 122,
    ("share, mixed subscriptions", "topic without a subscriber is assigned"): 4 / 122,
    ("share, some not assignable", "uncovered_partitions"): 26 / 115,
    ("share, some not assignable", "partition that is not assignable"): 38 / 115,
    ("share, some not assignable", "exception"): 2 / 117,
    ("streams-group@4.4.0", "active_spread above 1"): 4 / 528,
    ("streams-group@4.4.0", _PROCESS_LOADS): 146 / 528,
    ("streams-group@4.4.0", _STATEFUL_LOADS): 166 / 528,
    ("streams-group@4.4.0", "stateful_spread above 1, some stateless"): 95 / 311,
    ("streams-group@4.4.0", "state_moves"): 35 / 398,
    ("streams-group@4.4.0", "copy_moves"): 7 / 398,
    ("streams-group@4.1.0", "active_spread above 1"): 17 / 528,
    ("streams-group@4.1.0", "state_moves"): 54 / 398,
    ("streams-group@4.1.0", "copy_moves"): 55 / 398,
    **{
        (f"streams {name}{racks}", figure): share
        for name, moves, moves_with_racks, loads, loads_with_racks in _CLASSIC
        for racks, pair in (
            ("", (moves, loads)),
            (", rack strategy", (moves_with_racks, loads_with_racks)),
        )
        for figure, share in zip(("state_moves", _PROCESS_LOADS), pair, strict=True)
    },
    ("connect incremental", "task_sum_of_squares"): 0,
    ("connect incremental", "connector_sum_of_squares"): 0,
    ("connect incremental", "task_movement"): 0,
    ("connect incremental", "tasks of a connector above the rounded mean"): 355 / 1476,
    ("connect incremental", "the same by 2 or more"): 78 / 1476,
    ("connect incremental", "spread of tasks plus connectors above 1"): 0.47,
    ("connect eager", "tasks of a connector above the rounded mean"): 0 / 238,
    ("connect eager", "spread of tasks plus connectors above 1"): 0,
}
"""Share of the independent evaluation per kind of answers and figure."""
Figure = tuple[str, bool]
_MOVES = ("movement", "state_moves", "copy_moves")
"""Measures that the independent evaluation does not apply to problems without owners."""


def main() -> None:
    """Print the table, or write it to its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.name}")
    options = parser.parse_args()
    above: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for file in sorted(options.directory.glob("*@*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                answers = _answers(file, record["problem"])
                for figure, is_above in _figures(file, record):
                    above[answers, figure] += is_above
                    total[answers, figure] += 1
    rows = (_row(key, Proportion(above[key], total[key])) for key in INDEPENDENT)
    table = "\n".join((HEADER, *rows)) + "\n"
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        text = replace_numbers(page, table, where=PAGE.name, place=PLACE)
        write_text(PAGE, text)
    else:
        print(table)


def _row(key: tuple[str, str], found: Proportion) -> str:
    if found.interval is None:
        raise ValueError(f"no recorded answers for {key}")
    low, high = found.interval
    share = INDEPENDENT[key]
    agrees = "yes" if low <= share <= high else "no"
    recorded = f"{found.percent_with_interval}, {found.count} of {found.total}"
    return f"| {key[0]} | {key[1]} | {100 * share:.3g}% | {recorded} | {agrees} |"


def _answers(file: Path, problem: Mapping[str, Any]) -> str:
    """Return the name of a kind of answers."""
    kind, _, version = file.name.removesuffix(".jsonl.gz").partition("@")
    if kind == Kind.SHARE:
        if any(isinstance(one, dict) and "assignable" in one for one in problem["topics"].values()):
            return "share, some not assignable"
        subscriptions = {tuple(sorted(one["topics"])) for one in problem["members"]}
        return f"share, {'equal' if len(subscriptions) == 1 else 'mixed'} subscriptions"
    if kind == Kind.CONNECT:
        return "connect eager" if problem["protocol"] == "eager" else "connect incremental"
    if kind == Kind.STREAMS_GROUP:
        return f"{kind}@{version}"
    strategy = problem["config"].get("rack_aware_assignment_strategy", "none")
    return f"streams {problem['assignor']}{'' if strategy == 'none' else ', rack strategy'}"


def _figures(file: Path, record: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield the figures of an answer, and whether each of them is above its minimum, or true."""
    problem, answer = record["problem"], record.get("answer")
    kind = Kind(file.name.partition("@")[0])
    yield "exception", answer is None
    if answer is None:
        return
    document = parse_kind_document({**problem, "kind": str(kind)}, kind=kind)
    for state in KINDS[document.kind].compare(document, answer, SearchLimits()):
        yield from _measures(problem, state)
    match kind:
        case Kind.SHARE:
            yield "partition that is not assignable", _assigns_others(problem, answer)
        case Kind.CONNECT:
            for step, state in zip(problem["steps"], answer["steps"], strict=True):
                if state.get("stable", True) and step["workers"]:
                    yield from _connect_figures(step["connectors"], state["state"])
        case _ if kind is not Kind.STREAMS or not _is_fresh(problem):
            yield from _process_loads(document, answer)


def _measures(problem: Mapping[str, Any], state: KindComparison) -> Iterator[Figure]:
    """Yield the measures of a state that have a proven minimum, and figures that depend on them."""
    for one in state.measures:
        if one.minimum is not None and not (_is_fresh(problem) and one.name in _MOVES):
            if one.minimum != one.bound and one.name != "task_stopped_ms":
                raise ValueError(f"{problem['id']}: the minimum of {one.name} is not proven")
            yield one.name, one.value > one.minimum
        if one.name == "active_spread":
            yield "active_spread above 1", one.value > 1
        if one.name == "stateful_spread" and not _is_stateful(problem):
            yield "stateful_spread above 1, some stateless", one.value > 1
    unsubscribed = (text.partition("does not subscribe")[1] for text in state.invalid)
    yield "topic without a subscriber is assigned", any(unsubscribed)


def _is_fresh(problem: Mapping[str, Any]) -> bool:
    """Return whether a problem has no owners."""
    return problem.get("scenario") == "fresh"


def _is_stateful(problem: Mapping[str, Any]) -> bool:
    return all(one["stateful"] for one in problem["subtopologies"].values())


def _assigns_others(problem: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Return whether an answer assigns a partition that is not assignable."""
    assignable = {
        name: one["assignable"]
        for name, one in problem["topics"].items()
        if not isinstance(one, int) and one.get("assignable") is not None
    }
    return any(
        name in assignable and number not in assignable[name]
        for pairs in answer["members"].values()
        for name, number in pairs
    )


def _connect_figures(
    connectors: Mapping[str, int], state: Mapping[str, Mapping[str, Sequence[str]]]
) -> Iterator[Figure]:
    """Yield the figures of one stable state of a Connect cluster."""
    excess = 0
    for own in state.values():
        found = Counter(task.rpartition("-")[0] for task in own["tasks"])
        for name, count in found.items():
            excess = max(excess, count - -(-connectors[name] // len(state)))
    yield "tasks of a connector above the rounded mean", excess > 0
    yield "the same by 2 or more", excess > 1
    both = spread([len(own["tasks"]) + len(own["connectors"]) for own in state.values()])
    yield "spread of tasks plus connectors above 1", both > 1


def _process_loads(document: KindDocument, answer: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield the figures of the loads of processes, relative to their numbers of threads."""
    application = read_application(document)
    active = read_answer(application, answer).active
    yield _PROCESS_LOADS, _is_uneven(application, active)
    names = {topic.name for topic in application.stateful}
    stateful = {id: [t for t in tasks if t.topic in names] for id, tasks in active.items()}
    only = replace(application, topics=application.stateful)
    yield _STATEFUL_LOADS, _is_uneven(only, Assignment(stateful))


def _is_uneven(application: Application, active: Mapping[str, Sequence[Task]]) -> bool:
    speeds = {one.id: len(one.threads) for one in application.processes}
    group = application.place_group(application.topics, dict.fromkeys(speeds, ()), speeds=speeds)
    level = solve(group, levels=("sum_of_squares",)).level("sum_of_squares")
    if not level.is_proven:
        raise ValueError("the minimum of the sum of squares is not proven")
    value = value_of(group, Assignment(active), requested_levels(group, "sum_of_squares")[0])
    return value > level.bound


if __name__ == "__main__":
    main()
