"""Check many seeded groups in parallel, and print the errors found."""

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich.progress import track


def seed_parser(description: str | None, *, groups: int) -> argparse.ArgumentParser:
    """Return a parser with options for the number of groups, the first seed and the processes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--groups", type=int, default=groups, help="random groups")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    return parser


def print_errors(
    check: Callable[[Any], Sequence[str]],
    options: argparse.Namespace,
    *,
    chunksize: int,
    cases: Iterable[Any] | None = None,
) -> int:
    """Print the errors of all cases as soon as they are found, and return their number.

    The cases are the seeds of the options if no others are given.
    """
    seeds = range(options.seed, options.seed + options.groups)
    count = 0
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        results = pool.imap_unordered(check, cases or seeds, chunksize=chunksize)
        for found in track(results, description="groups", total=None if cases else len(seeds)):
            count += len(found)
            sys.stdout.writelines(f"{error}\n" for error in found)
            sys.stdout.flush()
    return count
