"""Every benchmark, or those named: a table for people, and one JSON line a timing.

Each runs in a process of its own.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks import assignor_ports as ports
from benchmarks import large_groups as scale
from benchmarks import spark_throughput as throughput
from benchmarks import weighted_groups as weights
from benchmarks.timing import Timing, alone, print_json, print_table, with_ratios

BENCHMARKS: dict[str, Callable[[], Iterator[Timing]]] = {
    "sticky-mixed": ports.mixed_sticky,
    "a-million": ports.a_million,
    "throughput": throughput.throughput,
    "optimum": partial(scale.optimum, ports.OURS, f"sticky, {ports.JAVA}"),
    "weights": weights.timings,
}
"""What `make bench` runs, by name."""


def main() -> None:
    """Run benchmarks from the command line: table to standard error, JSON to standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    names = parser.parse_args().names or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    rows: list[Timing] = []
    for name in names:
        sys.stderr.write(f"{name} ...\n")
        rows.extend(alone(_timings, name))
    rows = with_ratios(rows, ours=ports.OURS)
    print_table(rows, sys.stderr)
    print_json(rows, sys.stdout)


def _timings(name: str) -> list[Timing]:
    return list(BENCHMARKS[name]())
