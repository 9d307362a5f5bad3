"""Check on medium groups that void additions to a call make no answer worse.

``make monotony`` checks 2,000 groups with weights up to 2**62, racks, speeds and constraints. An
addition is void if the answer meets it already. Both calls have an equal deterministic limit or,
with ``--seconds``, an equal time limit. Each worse answer is printed and gives exit code 1.
"""

import sys
from functools import partial

from kassay.solver.limits import SearchLimits
from tests.seeded_checks import print_errors, seed_parser
from tests.solver.void_additions import LIMITS, medium_call, worse_answers


def _errors(seed: int, limits: SearchLimits, additions: int) -> list[str]:
    return worse_answers(medium_call(seed), seed, limits, additions)


def main() -> int:
    """Check every group and print worse answers."""
    parser = seed_parser(__doc__, groups=2_000)
    parser.add_argument("--additions", type=int, default=1, help="additions per group")
    parser.add_argument("--seconds", type=float, help="time limit instead of steps")
    chosen = parser.parse_args()
    limits = LIMITS if chosen.seconds is None else SearchLimits(time=chosen.seconds)
    check = partial(_errors, limits=limits, additions=chosen.additions)
    count = print_errors(check, chosen, chunksize=5)
    sys.stdout.write(f"{chosen.groups} groups, {count} worse answers\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
