"""Best standbys of stateful partitions, for each place of the active task.

Standbys have no limit per host, so the best standbys of a task depend only on the host of its
active task. Their costs are therefore costs of (partition, member) pairs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple

import numpy as np

from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group, cached
from kassay.solver.problem import Ints, build_problem

Tags = tuple[tuple[str, str], ...]

_MAX_CHOICES = 200_000
"""Maximum number of compared sets of standbys of a group: a few seconds."""


class HostType(NamedTuple):
    """Properties of a host that decide the costs of a standby on it."""

    tags: Tags
    is_holder: bool


@dataclass(frozen=True)
class StandbyCosts:
    """Costs of the best standbys, per class of partitions and member with the active task.

    Parameters
    ----------
    missing_tag_values, moves
        Values of `MissingTagValues` and `StandbyMoves`: (classes, members).
    """

    missing_tag_values: Ints
    moves: Ints


@cached
def standby_costs(group: Group) -> StandbyCosts:
    """Return the costs of the best standbys of each class of partitions.

    Raises
    ------
    UsageError
        If the tags of the hosts give too many choices.
    """
    problem = build_problem(group)
    copies = problem.copies
    shape = (0 if copies is None else len(copies.topic), problem.member_count)
    missing, moves = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    costs = StandbyCosts(missing, moves)
    if copies is None:
        return costs
    units = problem.host_units
    host_of = np.array(units.unit_of, dtype=np.int64)
    tags: list[Tags] = [()] * len(units.names)
    for host, index in zip(units.unit_of, problem.members, strict=True):
        tags[host] = tuple(sorted(group.members[index].tags))
    known: dict[tuple[tuple[HostType, ...], int], dict[HostType, tuple[int, int]]] = {}
    choices = 0
    for row, topic in enumerate(copies.topic.tolist()):
        if not group.topics[topic].is_stateful:
            continue
        holds = np.zeros(len(units.names), dtype=np.bool_)
        holds[host_of[copies.holders[row]]] = True
        hosts = [*map(HostType, tags, holds.tolist())]
        standbys = group.topics[topic].standbys
        key = tuple(sorted(hosts)), standbys
        if key not in known:
            types = dict.fromkeys(key[0])
            choices += _number_of_choices(len(types), min(standbys, len(hosts) - 1))
            if any(tags) and choices > _MAX_CHOICES:
                raise UsageError(
                    f"topics.{group.topics[topic].name}.standbys: {standbys} standbys can be "
                    f"placed on {len(types)} kinds of hosts in too many ways; remove tags with "
                    "many values"
                )
            known[key] = {active: best_standbys(hosts, active, standbys) for active in types}
        best = known[key]
        pairs = np.array([best[host] for host in hosts], dtype=np.int64).reshape(-1, 2)
        missing[row], moves[row] = pairs[host_of].T
    return costs


def _number_of_choices(types: int, standbys: int) -> int:
    return types * comb(types + standbys - 1, standbys)


def best_standbys(hosts: Sequence[HostType], active: HostType, standbys: int) -> tuple[int, int]:
    """Return the fewest missing tag values and, among them, the fewest moves of the standbys.

    ``hosts`` are the types of all hosts, and ``active`` is that of the host with the active task.

    Examples
    --------
    >>> east, west = (("zone", "east"),), (("zone", "west"),)
    >>> hosts = [HostType(east, True), HostType(east, True), HostType(west, False)]
    >>> best_standbys(hosts, hosts[0], 1)
    (0, 1)
    """
    free = Counter(hosts)
    free[active] -= 1
    count = min(standbys, len(hosts) - 1)
    possible = possible_tag_values((host.tags for host in hosts), count + 1)
    if not possible:
        held = sum(free[host] for host in free if host.is_holder)
        return 0, max(0, count - held)
    return min(
        (
            missing_tag_values((active.tags, *(host.tags for host in chosen)), possible),
            sum(not host.is_holder for host in chosen),
        )
        for chosen in combinations_with_replacement(free, count)
        if all(number <= free[host] for host, number in Counter(chosen).items())
    )


def possible_tag_values(hosts: Iterable[Tags], copies: int) -> dict[str, int]:
    """Return the greatest possible number of different values of each tag at the copies."""
    values = Counter(key for key, _ in dict.fromkeys(tag for tags in hosts for tag in tags))
    return {key: min(copies, number) for key, number in values.items()}


def missing_tag_values(copies: Iterable[Tags], possible: Mapping[str, int]) -> int:
    """Return the total number of tag values that no host with a copy has."""
    found = Counter(key for key, _ in dict.fromkeys(tag for tags in copies for tag in tags))
    return sum(max(0, number - found[key]) for key, number in possible.items())
