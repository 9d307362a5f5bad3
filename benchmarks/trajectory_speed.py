"""CPU time, moves and bound of the fewest moves over sequences of rebalances."""

import time
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from benchmarks.memory import peak_memory
from benchmarks.timing import Timing, run_alone
from kassay.experiments.study.families.event_streams import EventStreamFamily
from kassay.reference.model.group import Group, Member, Topic
from kassay.solver.limits import SearchLimits
from kassay.solver.trajectory.trajectory import optimal_trajectory


class StreamSize(NamedTuple):
    """Size of a stream, and the time limit in seconds."""

    members: int
    partitions: int
    rebalances: int
    limit: float


_SIZES = (StreamSize(12, 100, 40, 10), StreamSize(50, 1000, 80, 30), StreamSize(100, 2000, 80, 60))
_SEED = 2
_TOPICS = 10


def trajectories() -> Iterator[Timing]:
    """Time the search on streams of services, and of members with random subscriptions."""
    for size in _SIZES:
        yield run_alone(_timing, "services", size)
        yield run_alone(_timing, "random subscriptions", size)


def _timing(kind: str, size: StreamSize) -> Timing:
    groups = services(size) if kind == "services" else random_subscriptions(size)
    start = time.process_time()
    found = optimal_trajectory(groups, limits=SearchLimits(time=size.limit))
    return Timing(
        benchmark=f"trajectory, {kind}",
        case=f"{size.members} x {size.partitions} x {size.rebalances}",
        seconds=time.process_time() - start,
        note=f"moves {found.moves}, bound {found.bound}, one after the other "
        f"{sum(found.one_after_the_other)}, {peak_memory()} MB",
    )


def services(size: StreamSize) -> list[Group]:
    """Return a stream of the published study's distribution of events, with 2 to 4 services."""
    family = EventStreamFamily(
        name="benchmark",
        streams="size",
        rebalances=size.rebalances - 1,
        rebalances_of_large_groups=size.rebalances - 1,
        median_members=size.members,
        members_deviation=0,
        large_groups=0,
        median_partitions_per_member=size.partitions / size.members,
        partitions_deviation=0,
        one_service=0,
    )
    return [Group(topics=step.topics, members=step.members) for step in family.stream(_SEED)]


def random_subscriptions(size: StreamSize) -> list[Group]:
    """Return a stream in which each member subscribes to random topics of its own."""
    rng = Random(f"{_SEED}/{size}")
    shares = [rng.paretovariate(1.2) for _ in range(_TOPICS)]
    topics = {
        f"t{at}": max(1, round(size.partitions * share / sum(shares)))
        for at, share in enumerate(shares)
    }

    def subscription() -> tuple[str, ...]:
        return tuple(name for name in topics if rng.random() < 0.4) or (rng.choice([*topics]),)

    members = {f"m{at}": subscription() for at in range(size.members)}
    groups = []
    for rebalance in range(size.rebalances):
        event = rng.random()
        if event < 0.35 and len(members) > size.members // 2:
            del members[rng.choice([*members])]
        elif event < 0.7:
            members[f"r{rebalance}"] = subscription()
        elif event < 0.85:
            members[rng.choice([*members])] = subscription()
        else:
            topics[rng.choice([*topics])] += 1
        groups.append(
            Group(
                topics=tuple(Topic(name=name, partitions=count) for name, count in topics.items()),
                members=tuple(Member(id=name, subscription=own) for name, own in members.items()),
            )
        )
    return groups
