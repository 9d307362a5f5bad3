"""Seeded families: groups drawn at random, before or after something happened to them."""

from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from kassay.experiments.implementations.convergence import run_until_stable
from kassay.experiments.study.families.membership_events import (
    CHURN,
    MembershipEvent,
    Subscribe,
    grow,
    join,
    leave,
    resubscribe,
    resubscribe_all,
)
from kassay.experiments.study.families.unlimited_family import UnlimitedFamily
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.ownership import rejoin

_NAMES = 100  # of members, over a group's whole history


class Range(NamedTuple):
    """Both ends included."""

    low: int
    high: int

    def draw(self, rng: Random) -> int:
        """Draw, each octave as likely as the next, so that small and large both occur."""
        return min(self.high, int(self.low * ((self.high + 1) / self.low) ** rng.random()))


MEMBERS, TOPICS, PARTITIONS = Range(3, 20), Range(1, 10), Range(1, 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededFamily(UnlimitedFamily):
    """Groups drawn at random: one seed, one group.

    Parameters
    ----------
    name
        Name of the family.
    mixed
        Whether each member draws its own topics (a heterogeneous group) or all members
        consume the same ones.
    event
        What the rebalance is about. None draws ``steps`` events one after another, each
        followed by a rebalance but the last.
    steps
        Events before the rebalance that is studied, itself included.
    own_history
        Whether what members own is the studied assignor's own last result. If not, a
        random even deal stands for the past, the same for every assignor.
    members, topics, partitions
        How many members, topics, and partitions a topic, at the start of the history.
    """

    mixed: bool
    event: MembershipEvent | None = None
    steps: int = 1
    own_history: bool = False
    members: Range = MEMBERS
    topics: Range = TOPICS
    partitions: Range = PARTITIONS

    def expected_seconds(self, seed: int) -> float:  # noqa: ARG002
        """Guess how long all assignors and the optimum take."""
        return 0.02 if self.steps == 1 else 0.03

    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group of a seed.

        Parameters
        ----------
        seed
            Any integer. Equal seeds give equal groups, in every process.
        start
            Assignor whose results members own, where the family has a history of its
            own; a random even deal if None. The events are the same whatever it is.
            Where it finds no assignment, the history ends with that very group.

        Examples
        --------
        >>> family = SeededFamily(name="demo", mixed=False, event=MembershipEvent.JOIN)
        >>> family.build(3) == family.build(3)
        True
        """
        rng = Random(f"{self.name}/{seed}")  # noqa: S311
        names = [f"c{number:02}" for number in range(_NAMES)]
        rng.shuffle(names)
        group, subscribe = self._begin(rng, names)
        events = self._events(rng)
        for step, event in enumerate(events):
            settled = self._settled(group, f"{self.name}/{seed}/{step}", start)
            if settled is None:
                break
            group = self._after(event, settled, rng, subscribe, names)
        return replace(group, id=f"{self.name}/{seed}" + (f"@{start}" if start else ""))

    def _begin(self, rng: Random, names: list[str]) -> tuple[Group, Subscribe]:
        count = self.topics.draw(rng)
        topics = tuple(
            Topic(name=f"t{index}", partitions=self.partitions.draw(rng)) for index in range(count)
        )
        everything = tuple(topic.name for topic in topics)
        density = rng.uniform(0.2, 0.9)
        equal = tuple(sorted(rng.sample(everything, rng.randint((count + 1) // 2, count))))

        def subscribe(rng: Random) -> tuple[str, ...]:
            if not self.mixed:
                return equal
            drawn = tuple(name for name in everything if rng.random() < density)
            return drawn or (rng.choice(everything),)

        members = tuple(
            Member(id=names.pop(), subscription=subscribe(rng))
            for _ in range(self.members.draw(rng))
        )
        return Group(topics=topics, members=members), subscribe

    def _events(self, rng: Random) -> tuple[MembershipEvent, ...]:
        if self.event is MembershipEvent.FRESH:
            return ()
        if self.event is not None:
            return (self.event,) * self.steps
        return tuple(rng.choice(CHURN) for _ in range(self.steps))

    def _settled(self, group: Group, label: str, start: str | None) -> Group | None:
        if start is None or not self.own_history:
            return rejoin(group, deal(group, Random(label)))  # noqa: S311
        assignment = run_until_stable(group, start).assignment
        return None if assignment is None else rejoin(group, assignment)

    def _after(
        self,
        event: MembershipEvent,
        group: Group,
        rng: Random,
        subscribe: Subscribe,
        names: list[str],
    ) -> Group:
        match event:
            case MembershipEvent.JOIN:
                equal = group.members[0].subscription
                return join(group, rng, subscribe if self.mixed else lambda _: equal, names)
            case MembershipEvent.LEAVE:
                return leave(group, rng)
            case MembershipEvent.RESUBSCRIBE if self.mixed:
                return resubscribe(group, rng, subscribe)
            case MembershipEvent.RESUBSCRIBE:
                return resubscribe_all(group, rng)
            case MembershipEvent.GROW:
                return grow(group, rng)
            case MembershipEvent.FRESH:
                return group


def deal(group: Group, rng: Random) -> Assignment:
    """Deal partitions in random order, each to a least loaded subscriber drawn at random.

    Stands for a past that no assignor under study had a hand in.
    """
    subscribers = group.subscribers()
    cards = [
        (topic.name, number)
        for topic in group.topics
        if subscribers.get(topic.name)
        for number in range(topic.partitions)
    ]
    rng.shuffle(cards)
    hands: list[list[tuple[str, int]]] = [[] for _ in group.members]
    for card in cards:
        players = subscribers[card[0]]
        least = min(len(hands[player]) for player in players)
        hands[rng.choice([p for p in players if len(hands[p]) == least])].append(card)
    return Assignment(
        {member.id: sorted(hand) for member, hand in zip(group.members, hands, strict=True)}
    )
