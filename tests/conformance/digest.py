"""One line for each assignor: a digest of what our port makes of many groups.

    python -m tests.conformance.digest 500

Run under different values of ``PYTHONHASHSEED`` it must print the same.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator

from kassay.reference.model.group import Group
from tests.conformance.check import Answer, port_answer
from tests.conformance.groups import histories
from tests.conformance.upstream import NAMES


def answers(name: str, number: int) -> Iterator[tuple[Group, Answer]]:
    """Yield the first groups of an assignor's histories, and our port's answers to them.

    Parameters
    ----------
    name
        The assignor.
    number
        How many groups. Each step goes on from the port's own answer to the last.
    """
    groups = histories(name)
    group = next(groups)
    for _ in range(number):
        answer = port_answer(group, name)
        yield group, answer
        group = groups.send(answer.lists)


def digest(name: str, number: int) -> str:
    """Hash all answers, order of lists included."""
    seen = hashlib.sha256()
    for group, answer in answers(name, number):
        line = [group.id, answer.lists, answer.failed, answer.terminated]
        seen.update(json.dumps(line).encode())
    return seen.hexdigest()


if __name__ == "__main__":
    for assignor in NAMES:
        print(assignor, digest(assignor, int(sys.argv[1])))  # noqa: T201
