"""Share of recorded answers of family assignors that are above the minimum of a measure.

``python -m benchmarks.recorded_answers DIRECTORY --write`` writes a table. The files in it
are named ``KIND@VERSION.jsonl.gz``, and have one problem and its answer per line.
"""

import argparse
import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean
from typing import Any

from kassay.experiments.comparison.family_comparison import compare_answer
from kassay.reference.documents.family_documents import Kind, parse_family_document
from kassay.solver.limits import SearchLimits
from tools.insert_published_numbers import replace_numbers

PAGE = Path(__file__).parents[1] / "docs" / "results" / "families.md"
PLACE = "recorded-answers"
MEASURES = {
    Kind.SHARE: ("sum_of_squares", "slots", "movement"),
    Kind.STREAMS_GROUP: (
        *("active_sum_of_squares", "stateful_sum_of_squares", "stateful_spread"),
        *("state_moves", "copy_moves", "standby_moves"),
    ),
    Kind.STREAMS: ("active_sum_of_squares", "state_moves", "copy_moves", "standby_moves"),
    Kind.CONNECT: ("task_sum_of_squares", "task_topic_spread", "task_movement"),
}
HEADER = """\
| answers | measure | compared | above the minimum | mean excess of those |
|---|---|--:|--:|--:|"""


def main() -> None:
    """Print the table, or write it to its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.name}")
    options = parser.parse_args()
    rows = (row for file in sorted(options.directory.glob("*@*.jsonl.gz")) for row in _rows(file))
    table = "\n".join((HEADER, *rows))
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        text = replace_numbers(page, table, where=PAGE.name, place=PLACE)
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(table)


def _rows(file: Path) -> Iterator[str]:
    """Yield a row per assignor of a file and measure."""
    kind = Kind(file.name.partition("@")[0])
    excess: dict[tuple[str, str], list[int]] = {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if "answer" not in record:
                continue
            name = _name(file, record["problem"])
            for measure, difference in _excess(kind, record):
                excess.setdefault((name, measure), []).append(difference)
    for name, measure in sorted(excess, key=lambda key: (key[0], MEASURES[kind].index(key[1]))):
        numbers = excess[name, measure]
        above = [number for number in numbers if number]
        share = f"{len(above)} ({100 * len(above) / len(numbers):.0f} %)"
        yield (
            f"| {name} | `{measure}` | {len(numbers)} | {share} | "
            f"{f'{mean(above):.1f}' if above else '–'} |"
        )


def _name(file: Path, problem: Mapping[str, Any]) -> str:
    name = file.name.removesuffix(".jsonl.gz")
    if "assignor" not in problem:
        return f"{name} eager" if problem.get("protocol") == "eager" else name
    strategy = problem.get("config", {}).get("rack_aware_assignment_strategy", "none")
    racks = "" if strategy == "none" else ", rack strategy"
    return f"{name} {problem['assignor']}{racks}"


def _excess(kind: Kind, record: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the difference of value and proven minimum per measure and compared state."""
    document = parse_family_document({**record["problem"], "kind": str(kind)}, kind=kind)
    for state in compare_answer(document, record["answer"], limits=SearchLimits()):
        for one in state.measures:
            if one.name in MEASURES[kind] and one.minimum is not None:
                if one.minimum != one.bound:
                    raise ValueError(f"{document.id}: the minimum of {one.name} is not proven")
                yield one.name, one.value - one.minimum


if __name__ == "__main__":
    main()
