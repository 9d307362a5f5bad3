"""Check on medium groups that void additions to a call make no answer worse.

``make monotony`` checks 2,000 groups with weights up to 2**62, racks, speeds and constraints. An
addition is void if the answer meets it already. Both calls have an equal deterministic limit or,
with ``--seconds``, an equal time limit. Each worse answer is printed and gives exit code 1.
"""

import random
import sys
from functools import partial

from kassay.solver.limits import SearchLimits
from tests.seeded_checks import print_errors, seed_parser
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
    parser = seed_parser(__doc__, groups=2_000)
    parser.add_argument("--additions", type=int, default=1, help="additions per group")
    parser.add_argument("--seconds", type=float, help="time limit instead of steps")
    chosen = parser.parse_args()
    limits = SearchLimits(time=600, deterministic=0.0005)
    if chosen.seconds is not None:
        limits = SearchLimits(time=chosen.seconds)
    check = partial(worse_answers, limits=limits, additions=chosen.additions)
    count = print_errors(check, chosen, chunksize=5)
    sys.stdout.write(
        f"{chosen.groups} groups, {chosen.groups * chosen.additions} additions, {count} worse\n"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
