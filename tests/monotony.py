"""Check on medium groups that void additions to a call make no answer worse.

``make monotony`` checks 2,000 groups with weights up to 2**62, racks, speeds and constraints. An
addition is void if the answer meets it already. Both calls have an equal deterministic limit or,
with ``--seconds``, an equal time limit. Each worse answer is printed and gives exit code 1.
"""

import argparse
import multiprocessing
import random
import sys
from functools import partial

from rich.progress import track

from kassay.solver.limits import SearchLimits
from tests.solver.void_additions import is_worse, medium_call, void_additions


def worse_answers(seed: int, limits: SearchLimits, additions: int) -> list[str]:
    """Describe the random additions to the call of one seed that make its answer worse."""
    call = medium_call(seed)
    before = call.solve(limits)
    if before.assignment is None:
        return []
    chosen = random.Random(seed).sample([*void_additions(call, before, seed)], additions)
    answers = ((added, added.solve(limits)) for added in chosen)
    return [
        f"seed {seed}: {before.levels} before, {after.levels} with levels {added.levels} and "
        f"constraints {added.constraints}"
        for added, after in answers
        if is_worse(call, before, after)
    ]


def main() -> int:
    """Check every group and print worse answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=2_000, help="random groups")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--additions", type=int, default=1, help="additions per group")
    parser.add_argument("--seconds", type=float, help="time limit instead of steps")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    chosen = parser.parse_args()
    limits = SearchLimits(time=600, deterministic=0.0005)
    if chosen.seconds is not None:
        limits = SearchLimits(time=chosen.seconds)
    seeds = range(chosen.seed, chosen.seed + chosen.groups)
    check = partial(worse_answers, limits=limits, additions=chosen.additions)
    count = 0
    with multiprocessing.get_context("spawn").Pool(chosen.processes) as pool:
        results = pool.imap_unordered(check, seeds, chunksize=5)
        for found in track(results, description="groups", total=chosen.groups):
            count += len(found)
            sys.stdout.writelines(f"{answer}\n" for answer in found)
            sys.stdout.flush()
    sys.stdout.write(
        f"{chosen.groups} groups, {chosen.groups * chosen.additions} additions, {count} worse\n"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
