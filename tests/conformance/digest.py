"""Digest of a port's results on many groups, one line per assignor.

    python -m tests.conformance.digest 500

The output must not depend on ``PYTHONHASHSEED``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator

from kassay.reference.model.group import Group
from tests.conformance.groups import histories
from tests.conformance.port_comparison import AssignorOutput, port_output
from tests.conformance.upstream import NAMES


def outputs(name: str, number: int) -> Iterator[tuple[Group, AssignorOutput]]:
    """Yield the first groups of an assignor's histories and the port's results.

    Each step continues from the port's last result.
    """
    groups = histories(name)
    group = next(groups)
    for _ in range(number):
        output = port_output(group, name)
        yield group, output
        group = groups.send(output.lists)


def digest(name: str, number: int) -> str:
    """Return a digest of all results, including the order of lists."""
    hashed = hashlib.sha256()
    for group, output in outputs(name, number):
        line = [group.id, output.lists, output.failed, output.terminated]
        hashed.update(json.dumps(line).encode())
    return hashed.hexdigest()


if __name__ == "__main__":
    for assignor in NAMES:
        print(assignor, digest(assignor, int(sys.argv[1])))  # noqa: T201
