"""Compare both methods with brute force on random small groups with weights up to 2**62.

``make adversary`` checks 100,000 groups over all levels, tolerances, constraints, hosts and
speeds. Each invalid value, bound, status or exception is printed and gives exit code 1.
"""

import argparse
import multiprocessing
import sys
from functools import partial

from rich.progress import track

from tests.solver.adversarial_cases import METHODS, adversarial_case, adversarial_error


def errors(seed: int, methods: tuple[str, ...]) -> list[str]:
    """Describe the errors of all methods on the group of one seed."""
    case = adversarial_case(seed)
    found = ((method, adversarial_error(case, method)) for method in methods)
    return [f"seed {seed}, {method}: {error}" for method, error in found if error is not None]


def main() -> int:
    """Check every group and print errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=100_000, help="random groups")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--method", choices=METHODS, action="append", help="default: all")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    chosen = parser.parse_args()
    seeds = range(chosen.seed, chosen.seed + chosen.groups)
    check = partial(errors, methods=tuple(chosen.method or METHODS))
    count = 0
    with multiprocessing.get_context("spawn").Pool(chosen.processes) as pool:
        results = pool.imap_unordered(check, seeds, chunksize=20)
        for found in track(results, description="groups", total=chosen.groups):
            count += len(found)
            sys.stdout.writelines(f"{error}\n" for error in found)
            sys.stdout.flush()
    sys.stdout.write(f"{chosen.groups} groups, {count} errors\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
