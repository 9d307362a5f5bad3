"""Family of event streams: groups with random events that cause rebalances."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from random import Random

from kassay.experiments.study.families.base_family import Family, Range
from kassay.reference.model.group import Group, Member, Topic

_LARGE, _TOPICS = Range(200, 1000), Range(1, 20)
_PODS_PER_RESTART = 10


class StreamEvent(StrEnum):
    """Cause of a rebalance in an event stream."""

    START = "start"
    SCALE_OUT = "scale-out"
    SCALE_IN = "scale-in"
    RESTART_LEAVE = "restart-leave"
    RESTART_RETURN = "restart-return"
    LOSS = "loss"
    REPLACEMENT = "replacement"
    TOPIC_GROWTH = "topic-growth"
    NEW_TOPIC = "new-topic"
    NEW_SUBSCRIPTION = "new-subscription"


@dataclass(frozen=True, slots=True)
class StreamStep:
    """Topics and members at one rebalance of an event stream, without owned partitions."""

    event: StreamEvent
    topics: tuple[Topic, ...]
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStreamFamily(Family):
    """Family with one random event stream per seed.

    A group has one or several services. The members of a service have equal subscriptions.
    """

    streams: str = "trajectories"  # part of the random seed: families can share streams
    # The members own a random even assignment, instead of earlier results of the assignor.
    random_past: bool = False
    rebalances: int = 80  # per stream, without the first assignment
    rebalances_of_large_groups: int = 50  # with more than 100 members at the start
    median_members: int = 12  # log-normal
    members_deviation: float = 0.9  # of the logarithm
    large_groups: float = 0.006  # share of groups with 200 to 1,000 members, log-uniform
    median_partitions_per_member: float = 8.0  # log-normal
    partitions_deviation: float = 0.7  # of the logarithm
    max_partitions: int = 8000  # at the start
    topics: Range = _TOPICS  # log-uniform
    topic_exponent: float = 1.2  # partitions per topic: power law
    one_service: float = 0.5  # share of groups with one service; others have 2 to 4
    static_members: float = 0.5  # share of groups with static members
    # Streams with a hindsight optimum: the first seeds, up to a product of members and partitions
    # at the start. The search of a stream ends after some wall-clock seconds.
    hindsight_seeds: int = 300
    hindsight_size: int = 500
    hindsight_work: float = 60.0

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Build the group at the start of the stream, without owned partitions."""
        step = next(iter(self.stream(seed)))
        return Group(id=f"{self.name}/{seed}", topics=step.topics, members=step.members)

    def has_hindsight(self, seed: int) -> bool:
        """Return whether a study computes the hindsight optimum of an event stream."""
        if self.random_past or seed >= self.hindsight_seeds:
            return False
        group = self.build(seed)
        return len(group.members) * group.partition_count <= self.hindsight_size

    def stream(self, seed: int) -> Iterator[StreamStep]:
        """Yield the steps of an event stream: the start, and one step per rebalance."""
        stream = _EventStream(self, Random(f"{self.streams}/{seed}"))  # noqa: S311
        is_large = len(stream.members) > 100
        count = self.rebalances_of_large_groups if is_large else self.rebalances
        return islice(stream.steps(), count + 1)


class _EventStream:
    def __init__(self, family: EventStreamFamily, rng: Random) -> None:
        self.family, self.rng = family, rng
        self.is_static = rng.random() < family.static_members
        count = self._draw_members()
        self.topics = self._draw_topics(count)
        self.initial_members, self.initial_partitions = count, sum(self.topics.values())
        self.services = self._draw_services(count)
        self.weights = [rng.paretovariate(1.0) for _ in self.services]
        self.members: dict[str, int] = {}  # service of each member
        for service in range(len(self.services)):
            self._join(service)
        for service in rng.choices(
            range(len(self.services)), self.weights, k=count - len(self.services)
        ):
            self._join(service)

    def _draw_members(self) -> int:
        family, rng = self.family, self.rng
        if rng.random() < family.large_groups:
            return _LARGE.draw(rng)
        size = family.median_members * math.exp(rng.gauss(0, family.members_deviation))
        return min(_LARGE.low, max(2, round(size)))

    def _draw_topics(self, members: int) -> dict[str, int]:
        family, rng = self.family, self.rng
        deviation = rng.gauss(0, family.partitions_deviation)
        per_member = family.median_partitions_per_member * math.exp(deviation)
        total = min(family.max_partitions, members * per_member)
        shares = [rng.paretovariate(family.topic_exponent) for _ in range(family.topics.draw(rng))]
        return {
            f"t{number:02}": max(1, round(total * share / sum(shares)))
            for number, share in enumerate(shares)
        }

    def _draw_services(self, members: int) -> list[list[str]]:
        rng, names = self.rng, list(self.topics)
        if len(names) == 1 or rng.random() < self.family.one_service:
            return [names]
        density = rng.uniform(0.3, 0.9)
        services = [
            [name for name in names if rng.random() < density] or [rng.choice(names)]
            for _ in range(min(members, rng.randint(2, 4)))
        ]
        for name in names:
            if not any(name in topics for topics in services):
                rng.choice(services).append(name)
        return services

    def _join(self, service: int, member: str | None = None) -> None:
        self.members[member or f"s{service}-{self.rng.getrandbits(40):010x}"] = service

    def steps(self) -> Iterator[StreamStep]:
        """Yield the initial state, then the state at each rebalance, infinitely often."""
        yield self._step(StreamEvent.START)
        events = (
            (self._scale, 45),
            (self._rolling_restart, 6),
            (self._pod_loss, 15),
            (self._topic_growth, 15),
            (self._new_topic, 5),
            (self._new_subscription, 10),
        )
        actions, weights = zip(*events, strict=True)
        while True:
            [action] = self.rng.choices(actions, weights)
            yield from map(self._step, action())

    def _step(self, event: StreamEvent) -> StreamStep:
        subscriptions = [tuple(sorted(topics)) for topics in self.services]
        return StreamStep(
            event,
            tuple(Topic(name=name, partitions=count) for name, count in self.topics.items()),
            tuple(
                Member(
                    id=member,
                    subscription=subscriptions[service],
                    instance_id=member if self.is_static else None,
                )
                for member, service in self.members.items()
            ),
        )

    def _scale(self) -> Iterator[StreamEvent]:
        """Add or remove pods of one service. The member count stays near its initial value."""
        [service] = self.rng.choices(range(len(self.services)), self.weights)
        pods = self._pods_of(service)
        count = min(int(self.rng.paretovariate(1.2)), max(1, len(self.members) // 2))
        total = self.initial_members + len(self.members)
        removable = min(count, len(pods) - 1, len(self.members) - 2)
        if removable > 0 and self.rng.random() < len(self.members) / total:
            for pod in self.rng.sample(pods, removable):
                del self.members[pod]
            yield StreamEvent.SCALE_IN
        elif len(self.members) < min(2 * self.initial_members, _LARGE.high):
            for _ in range(count):
                self._join(service)
            yield StreamEvent.SCALE_OUT

    def _rolling_restart(self) -> Iterator[StreamEvent]:
        """Restart up to 10 pods of one service, one after the other.

        A pod returns after its session has ended: with the same name if members are static, else as
        a new member.
        """
        [service] = self.rng.choices(range(len(self.services)), self.weights)
        pods = self._pods_of(service)
        self.rng.shuffle(pods)
        for pod in pods[:_PODS_PER_RESTART]:
            del self.members[pod]
            if self.members:
                yield StreamEvent.RESTART_LEAVE
            self._join(service, pod if self.is_static else None)
            yield StreamEvent.RESTART_RETURN

    def _pod_loss(self) -> Iterator[StreamEvent]:
        """Remove a pod, and add a new pod at the next rebalance."""
        lost = self.rng.choice(list(self.members))
        service = self.members.pop(lost)
        if self.members:
            yield StreamEvent.LOSS
        self._join(service)
        yield StreamEvent.REPLACEMENT

    def _topic_growth(self) -> Iterator[StreamEvent]:
        """Add up to 50% more partitions to a topic, up to twice the initial total."""
        name = self.rng.choice(sorted(set(chain.from_iterable(self.services))))
        added = self.rng.randint(1, max(1, self.topics[name] // 2))
        if self._has_room(added):
            self.topics[name] += added
            yield StreamEvent.TOPIC_GROWTH

    def _new_topic(self) -> Iterator[StreamEvent]:
        partitions = self.rng.choice(list(self.topics.values()))
        chosen = self.services if self.rng.random() < 0.5 else [self.rng.choice(self.services)]
        if self._has_room(partitions):
            name = f"t{len(self.topics):02}"
            self.topics[name] = partitions
            for topics in chosen:
                topics.append(name)
            yield StreamEvent.NEW_TOPIC

    def _new_subscription(self) -> Iterator[StreamEvent]:
        topics = self.rng.choice(self.services)
        others = [name for name in self.topics if name not in topics]
        if others and (len(topics) < 2 or self.rng.random() < 0.5):
            topics.append(self.rng.choice(others))
            yield StreamEvent.NEW_SUBSCRIPTION
        elif len(topics) > 1:
            topics.remove(self.rng.choice(topics))
            yield StreamEvent.NEW_SUBSCRIPTION

    def _has_room(self, partitions: int) -> bool:
        return sum(self.topics.values()) + partitions <= 2 * self.initial_partitions

    def _pods_of(self, service: int) -> list[str]:
        return [member for member, own in self.members.items() if own == service]


EVENT_STREAMS = EventStreamFamily(name="trajectories")
