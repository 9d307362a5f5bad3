"""Compare both methods with brute force on random small groups with weights up to 2**62.

``make adversary`` checks 100,000 groups over all levels, tolerances, constraints, hosts and
speeds. Each invalid value, bound, status or exception is printed and gives exit code 1.
"""

import sys
from functools import partial

from tests.seeded_checks import print_errors, seed_parser
from tests.solver.adversarial_cases import METHODS, adversarial_case, adversarial_error


def errors(seed: int, methods: tuple[str, ...]) -> list[str]:
    """Describe the errors of all methods on the group of one seed."""
    case = adversarial_case(seed)
    found = ((method, adversarial_error(case, method)) for method in methods)
    return [f"seed {seed}, {method}: {error}" for method, error in found if error is not None]


def main() -> int:
    """Check every group and print errors."""
    parser = seed_parser(__doc__, groups=100_000)
    parser.add_argument("--method", choices=METHODS, action="append", help="default: all")
    chosen = parser.parse_args()
    check = partial(errors, methods=tuple(chosen.method or METHODS))
    count = print_errors(check, chosen, chunksize=20)
    sys.stdout.write(f"{chosen.groups} groups, {count} errors\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
