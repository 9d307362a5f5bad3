"""Predict the costs of events in a group, as distributions over simulated samples."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from kassay.experiments.prediction.scenario import Configuration, Event, RollingRestart, ScaleTo
from kassay.experiments.prediction.simulate_events import SETTLE_MS, Course, Sample, consumer_names
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.display import first_items
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, cached
from kassay.reference.model.group_remarks import require_group
from kassay.reference.model.load_metrics import sum_of_squares

_LOW, _HIGH = 5, 95
"""Percentiles at the ends of the 90% interval."""
_MOST_SAMPLES, _FEWEST_SAMPLES = 20, 2
_WORK = 650_000
"""Maximum work of a prediction: heartbeats and rebalanced partitions, about 3 seconds."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Values of all samples, with their mean, 5th percentile and 95th percentile."""

    mean: float
    low: float
    high: float
    values: tuple[float, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def of(cls, values: Sequence[float]) -> "Distribution":
        """Compute the distribution of values, one per sample."""
        # Limits are values of samples: a count has no limit such as 2.9.
        low = np.percentile(values, _LOW, method="lower")
        high = np.percentile(values, _HIGH, method="higher")
        return cls(float(np.mean(values)), float(low), float(high), tuple(values))

    def samples_above(self, other: "Distribution", *, factor: float = 1.0) -> int:
        """Count the samples whose value exceeds ``factor`` times the value of ``other``.

        Samples with the same index have the same conditions, such as busy consumers.
        """
        return sum(a > factor * b for a, b in zip(self.values, other.values, strict=True))

    def is_above(self, other: "Distribution", *, factor: float = 1.0) -> bool:
        """Return whether at least 75% of the samples exceed ``factor`` times ``other``."""
        return 4 * self.samples_above(other, factor=factor) >= 3 * len(self.values)

    def __str__(self) -> str:
        """Format the mean, and the 90% interval if the values differ."""
        return interval_text(self.record(), " to ")

    def count(self, noun: str) -> str:
        """Format the 90% interval with a noun, such as ``2 to 3 moves`` or ``1 move``."""
        low, high = plain(round(self.low, 1)), plain(round(self.high, 1))
        text = low if low == high else f"{low} to {high}"
        return f"{text} {noun}{'' if text == '1' else 's'}"

    def contains(self, value: float) -> bool:
        """Return whether a value is within the 90% interval."""
        return self.low <= value <= self.high

    def record(self) -> dict[str, float]:
        """Convert the distribution to JSON, rounded to one decimal."""
        parts = {"mean": self.mean, "low": self.low, "high": self.high}
        return {name: round(value, 1) for name, value in parts.items()}


def plain(value: float) -> str:
    """Format a value with at most one decimal: 1002.54 as ``1,002.5``."""
    return f"{value:,.1f}".removesuffix(".0")


def interval_text(value: Mapping[str, float], to: str = "–") -> str:
    """Format the JSON record of a distribution as text, such as ``2 (1–3)``."""
    mean, low, high = (plain(value[key]) for key in ("mean", "low", "high"))
    return mean if low == high else f"{mean} ({low}{to}{high})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedCost:
    """Predicted cost of one or more events, until the group is stable again.

    Parameters
    ----------
    rebalances
        Number of new generations, or of new epochs under the consumer protocol.
    moves
        Number of partitions that go from one member to another member.
    unowned_seconds
        Sum over the partitions of the seconds without an owner.
    stopped_seconds
        Seconds in which the whole group stands still: no member consumes any partition.
    """

    rebalances: Distribution
    moves: Distribution
    unowned_seconds: Distribution
    stopped_seconds: Distribution

    @classmethod
    def of(cls, samples: Sequence[Sample], times: Sequence[float]) -> "PredictedCost":
        """Sum the costs of all events per sample, each multiplied by its factor in ``times``."""

        def total(name: str) -> Distribution:
            return Distribution.of(
                [
                    sum(n * getattr(cost, name) for n, cost in zip(times, one.costs, strict=True))
                    for one in samples
                ]
            )

        return cls(**{one.name: total(one.name) for one in fields(cls)})

    def record(self) -> dict[str, object]:
        """Convert the cost to JSON."""
        return {one.name: getattr(self, one.name).record() for one in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPrediction:
    """Predicted cost of one event, and the loads after the event.

    Parameters
    ----------
    loads
        Load of each member that is in the group after the event in at least one sample, in the
        unit of the weights.
    maximum_load
        Maximum load, in the unit of the fastest member.
    squares
        Sum of the squared loads; None if weights or speeds differ.
    members
        Number of members.
    """

    event: str
    cost: PredictedCost
    loads: Mapping[str, Distribution] = field(repr=False)
    sorted_loads: tuple[Distribution, ...] = field(repr=False)
    maximum_load: Distribution
    squares: Distribution | None
    members: Distribution


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Prediction of the costs of events, which is equal for equal seeds."""

    id: str | None
    configuration: Configuration
    seed: int
    events: tuple[EventPrediction, ...]
    courses: tuple[Sample, ...] = field(repr=False)

    def __repr__(self) -> str:
        names = first_items([one.event for one in self.events])
        cost = f"{self.total.rebalances.count('rebalance')}, {self.total.moves.count('move')}"
        return f"<{self.configuration.assignor} at {names} in {self.samples} samples: {cost}>"

    @property
    def samples(self) -> int:
        """Return the number of simulated samples."""
        return len(self.courses)

    @cached_property
    def total(self) -> PredictedCost:
        """Sum the costs of all events."""
        return self.cost_of([1] * len(self.events))

    @cached_property
    def final(self) -> Assignment:
        """Return the most frequent assignment after the last event."""
        return self.assignment_after(-1)

    def assignment_after(self, event: int) -> Assignment:
        """Return the most frequent assignment after an event, by the name in `consumer_names`."""
        found = Counter(
            tuple((name, tuple(sorted(tps))) for name, tps in sorted(assignment.items()))
            for assignment in (one.assignments[event] for one in self.courses)
        )
        return Assignment(dict(found.most_common(1)[0][0]))

    @cached_property
    def stopped_members(self) -> dict[str, int]:
        """Count the samples in which members stopped because of an error, by reason."""
        return dict(Counter(note for one in self.courses for note in set(one.notes)))

    def cost_of(self, times: Sequence[float]) -> PredictedCost:
        """Sum the costs of the events. ``times`` has the number of repetitions of each event."""
        return PredictedCost.of(self.courses, times)


def predict(
    group: Group,
    configuration: Configuration | str | None = None,
    events: Sequence[Event] | Event | None = None,
    *,
    samples: int | None = None,
    seed: int = 0,
) -> Prediction:
    """Predict the cost of events in a group, and the loads after them.

    Samples differ in the ids of joining members, and in times of heartbeats, polls and start-up.
    They also differ in the delays of consumers, from idle to busy, and in orders that the source
    does not show.

    Parameters
    ----------
    configuration
        Current configuration, or the name of the current assignor: a port (except ``uniform-4.0``
        and ``legacy-…``), or as in `Configuration`. The default is what the group's source shows.
    events
        An `Event`, or several in order of time; by default one rolling restart.
    samples
        Number of samples, at least 1. By default 20 for small groups and fewer for large ones.
    seed
        Seed of the samples.

    Raises
    ------
    InputError
        If the group has no members, its assignor is not known, or an event names a member or
        topic that does not exist.
    UsageError
        If a parameter is outside its range.

    Examples
    --------
    >>> from kassay import Leave, Member, Topic
    >>> topic = Topic(name="t", partitions=6)
    >>> members = tuple(
    ...     Member(id=f"pod-{n}", subscription=("t",), owned=(("t", 2 * n), ("t", 2 * n + 1)))
    ...     for n in range(3)
    ... )
    >>> found = predict(Group(topics=(topic,), members=members), "range", Leave(members=("pod-2",)))
    >>> found.total.rebalances.mean, found.total.moves.mean, found.events[0].maximum_load.mean
    (1.0, 1.0, 3.0)
    """
    require_group(group)
    if not group.members:
        raise InputError(f"{group.label} has no members; predict requires at least one member")
    if not isinstance(configuration, Configuration | str | None):
        raise UsageError(f"configuration must be a Configuration or a name, got {configuration!r}")
    if not isinstance(configuration, Configuration):
        configuration = Configuration.of(group, configuration, option="configuration=NAME")
    if events is None:
        events = RollingRestart()
    planned = (events,) if isinstance(events, Event) else tuple(events)
    if not planned or not all(isinstance(one, Event) for one in planned):
        raise UsageError(
            f"events must be events such as Rebalance(), and at least one event, got {events!r}"
        )
    if samples is None:
        samples = sample_count(group, configuration, planned)
    if samples < 1:
        raise UsageError(f"samples must be at least 1, got {samples}")
    courses = tuple(_samples(group, configuration, planned, samples, seed))
    return Prediction(
        id=group.id,
        configuration=configuration,
        seed=seed,
        events=tuple(_event_predictions(group, planned, courses)),
        courses=courses,
    )


def _samples(
    group: Group, configuration: Configuration, events: Sequence[Event], count: int, seed: int
) -> Iterator[Sample]:
    """Simulate the samples, in which consumers differ from idle to busy."""
    order = list(range(count))
    random.Random(seed).shuffle(order)  # noqa: S311 - not for security
    for number, rank in enumerate(order):
        course = Course(group, configuration, events, seed * 1_000_003 + number)
        found = course.run((rank + 0.5) / count)
        # The rebalances of one sample are enough, and those of all need much memory.
        yield replace(found, rebalances=()) if number else found


def sample_count(group: Group, configuration: Configuration, events: Sequence[Event]) -> int:
    """Choose the number of samples from 20 (small groups) to 2 (large groups)."""
    members, partitions = len(group.members), group.partition_count
    rebalances = 0
    seconds = len(events) * (configuration.session_timeout + SETTLE_MS / 1000)
    for event in events:
        batches = 1
        if isinstance(event, RollingRestart):
            batches = -(-members // max(1, event.at_once))
            seconds += batches * (event.downtime + event.pause)
        rebalances += 2 * batches
    interval = configuration.heartbeat_interval
    work = rebalances * (partitions + 20 * members) + 4 * members * seconds / interval
    return max(_FEWEST_SAMPLES, min(_MOST_SAMPLES, round(_WORK / max(1.0, work))))


def partition_weights(group: Group, topic: str, number: int) -> tuple[int, ...]:
    """Return the weights of a partition, one per time window."""
    known = group.topic_table().get(topic)
    if known is not None and known.weights is None:
        return (1,) * group.window_count
    if known is None or number >= known.partitions:
        return _mean_weights(group)[topic if known else None]
    return known.profiles[number] if known.profiles else (known.weight(number),)


@cached
def _mean_weights(group: Group) -> dict[str | None, tuple[int, ...]]:
    """Compute the mean weight of a partition per window, by topic; None: all topics."""
    found, totals = dict[str | None, tuple[int, ...]](), []
    for one in group.topics:
        total = [one.total_weight] * group.window_count
        if one.profiles:
            total = list(map(sum, zip(*one.profiles, strict=True)))
        found[one.name] = tuple(-(-value // max(1, one.partitions)) for value in total)
        totals.append(total)
    means = (Fraction(sum(all_), group.partition_count or 1) for all_ in zip(*totals, strict=True))
    return found | {None: tuple(round(mean) or 1 for mean in means)}


def _loads(group: Group, assignment: Assignment) -> dict[str, int]:
    """Compute the load of each member, with mean weights for new partitions."""
    if all(one.weights is None for one in group.topics):
        return assignment.counts()
    factors, found = group.window_factors, {}
    for name, partitions in assignment.items():
        rows = [partition_weights(group, tp.topic, tp.partition) for tp in partitions]
        sums = map(sum, zip(*rows, strict=True))
        found[name] = max((load * n for load, n in zip(sums, factors, strict=False)), default=0)
    return found


def _speeds(group: Group, events: Sequence[Event]) -> Callable[[str], int]:
    names = consumer_names(group)
    known = {names[one.id]: one.speed for one in group.members}
    models = [event.like for event in events if isinstance(event, ScaleTo) and event.like]
    added = known.get(models[0], 1) if models else group.members[0].speed
    return lambda name: known.get(name, added)


def _event_predictions(
    group: Group, events: Sequence[Event], samples: Sequence[Sample]
) -> Iterator[EventPrediction]:
    speed = _speeds(group, events)

    def maximum(loads: Mapping[str, int]) -> float:
        fastest = max(map(speed, loads), default=1)
        return max((load * fastest / speed(name) for name, load in loads.items()), default=0)

    has_squares = group.common_weight is not None and group.has_equal_speeds
    for number, event in enumerate(events):
        found = [_loads(group, one.assignments[number]) for one in samples]
        names = dict.fromkeys(name for one in found for name in one)
        count = max(map(len, found))
        ranked = [sorted(one.values(), reverse=True) + [0] * (count - len(one)) for one in found]
        yield EventPrediction(
            event=str(event),
            cost=PredictedCost.of(samples, [at == number for at in range(len(events))]),
            loads={name: Distribution.of([one.get(name, 0) for one in found]) for name in names},
            sorted_loads=tuple(Distribution.of(column) for column in zip(*ranked, strict=True)),
            maximum_load=Distribution.of(list(map(maximum, found))),
            squares=Distribution.of([sum_of_squares(one.values()) for one in found])
            if has_squares
            else None,
            members=Distribution.of([len(one) for one in found]),
        )
