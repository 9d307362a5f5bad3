"""Groups of real consumers that carry out predicted events, and the costs of these events."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from kassay.experiments.prediction.scenario import (
    Configuration,
    Event,
    Rebalance,
    Restart,
    RollingRestart,
)
from kassay.reference.model.group import Group
from tests.conformance.admin import Administrator
from tests.conformance.client_groups import ClientProcess
from tests.conformance.client_rebalances import observed_rebalances
from tests.conformance.consumers import Profile, RunningConsumer

THREE = {"a-orders": 12, "a-refunds": 3, "a-alerts": 3}
MIXED = {"m-clicks": 5, "m-views": 6, "m-carts": 7}
VARIED = {"v-clicks": 4, "v-views": 3, "v-carts": 6}
HOT = {"w-events": 8}
TOPICS = THREE | MIXED | VARIED | HOT
_EQUAL = (tuple(THREE),) * 5
_MIXED = (
    tuple(MIXED),
    ("m-clicks", "m-views"),
    ("m-carts",),
    tuple(MIXED),
    ("m-clicks", "m-views"),
    ("m-views",),
)
_VARIED = (("v-views", "v-carts"), tuple(VARIED), ("v-clicks", "v-views"), ("v-carts", "v-clicks"))
_PATTERNS = (*(("pattern:m-.*",),) * 3, *(("pattern:m-(clicks|views)",),) * 2)
_STABLE_SECONDS = 90.0
_SESSION_MILLIS = 45_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveGroup:
    """A group to run: its topics, and those of each member in the order in which they join.

    Members join one after another if ``in_turn``, and the members ``crashed`` end without leaving.
    ``assignor`` can be a list, separated by commas. ``weights`` are those of the only topic.
    """

    name: str
    assignor: str
    topics: Mapping[str, int] = field(default_factory=lambda: THREE)
    members: Sequence[Sequence[str]] = _EQUAL
    library: str = "java"
    is_static: bool = False
    in_turn: bool = False
    crashed: Sequence[str] = ()
    weights: Sequence[int] = ()


def _mixed(name: str, assignor: str, library: str = "java") -> LiveGroup:
    """Return a group with mixed subscriptions that a sticky assignor leaves unbalanced."""
    return LiveGroup(
        name=name, assignor=assignor, topics=MIXED, members=_MIXED, library=library, in_turn=True
    )


GROUPS = (
    LiveGroup(name="range", assignor="range"),
    LiveGroup(
        name="range, after a crash", assignor="range", members=_EQUAL[:1] * 6, crashed=("pod-2",)
    ),
    LiveGroup(name="default list", assignor="range,cooperative-sticky"),
    LiveGroup(name="range, static", assignor="range", is_static=True),
    LiveGroup(
        name="range, weighted",
        assignor="range",
        topics=HOT,
        members=(tuple(HOT),) * 4,
        weights=(30, 30, 30, 30, 10, 10, 10, 10),
    ),
    LiveGroup(name="roundrobin, mixed", assignor="roundrobin", topics=VARIED, members=_VARIED),
    _mixed("sticky, mixed", "sticky"),
    _mixed("cooperative-sticky, mixed", "cooperative-sticky"),
    _mixed("uniform, mixed", "uniform"),
    LiveGroup(name="patterns", assignor="server-range", topics=MIXED, members=_PATTERNS),
    LiveGroup(name="server-range", assignor="server-range"),
    LiveGroup(name="server-range, static", assignor="server-range", is_static=True),
    LiveGroup(name="librdkafka range", assignor="range", library="librdkafka"),
    _mixed("librdkafka cooperative-sticky, mixed", "cooperative-sticky", "librdkafka"),
    LiveGroup(name="aiokafka range", assignor="range", library="aiokafka"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Intervals of heartbeats, and times of rolling restarts, in seconds."""

    heartbeat: float = 3.0
    consumer_heartbeat: float = 5.0
    downtime: float = 6.0
    pause: float = 15.0

    def configured(self, configuration: Configuration) -> Configuration:
        """Return a configuration with these heartbeats."""
        return replace(
            configuration,
            heartbeat_interval=self.heartbeat,
            consumer_heartbeat_interval=self.consumer_heartbeat,
        )

    @property
    def restart(self) -> RollingRestart:
        """Return a rolling restart with these times."""
        return RollingRestart(downtime=self.downtime, pause=self.pause)

    def settings(self) -> dict[str, str]:
        """Return the properties of the broker."""
        interval = str(round(1000 * self.consumer_heartbeat))
        return {
            "group.consumer.heartbeat.interval.ms": interval,
            "group.consumer.session.timeout.ms": str(_SESSION_MILLIS),
            "offsets.topic.num.partitions": "1",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RealCost:
    """Cost of an event, and the sorted loads after it."""

    rebalances: int
    moves: int
    unowned_seconds: float
    loads: Sequence[int]


def events_of(text: str, configuration: str, group: Group, times: Times) -> list[Event]:
    """Return the events of an action that a plan recommends, with the text of the action."""
    if text.startswith("trigger a rebalance"):
        return [Rebalance()]
    if text.startswith("restart "):
        member = text.removeprefix("restart ").split(":")[0]
        client = next(one.client.id for one in group.members if one.id == member)
        return [Restart(members=(str(client),), downtime=times.downtime)]
    steps = times.configured(Configuration.of(group)).steps_to(configuration)
    return [replace(times.restart, to=step) for step in steps]


@dataclass(slots=True)
class _Member:
    """Consumers of one client id. The last one runs if ``is_up``."""

    topics: Sequence[str]
    consumers: list[RunningConsumer | ClientProcess] = field(default_factory=list)
    is_up: bool = False
    is_static: bool = False
    left_at: float = 0.0


class LiveRun:
    """A run of a group on a cluster, with the names of topics and members of its table."""

    def __init__(
        self, group: LiveGroup, name: str, bootstrap: str, admin: Administrator, times: Times
    ) -> None:
        self.group, self.name, self.times = group, name, times
        self._bootstrap, self._admin = bootstrap, admin
        self._draw = random.Random(name)
        self._assignor, self._is_static = group.assignor, group.is_static
        prefix = "aiokafka" if group.library == "aiokafka" else "pod"
        self._members = {f"{prefix}-{n}": _Member(topics) for n, topics in enumerate(group.members)}

    def start(self) -> None:
        """Start the group, and bring it into its state."""
        for client in self._members:
            self._start(client)
            if self.group.in_turn:
                self._await_stable(complete=False)
        self._await_stable()
        for client in self.group.crashed:
            self._stop(client, crashes=True)
            self._await_stable()

    def perform(self, event: Event) -> RealCost:
        """Carry out an event, and return its cost when the group is stable again."""
        start, generation = time.time(), self._generation()
        if isinstance(event, RollingRestart):
            self._rolling_restart(event)
        elif isinstance(event, Restart):
            for client in event.members:
                self._stop(client)
                self._start(client, at=start + event.downtime)
        elif isinstance(event, Rebalance):
            for consumer in self._running():
                if isinstance(consumer, RunningConsumer):
                    consumer.enforce_rebalance()
        else:
            raise TypeError(f"no live group can carry out {event!r}")
        time.sleep(self.times.heartbeat + self.times.consumer_heartbeat)
        self._await_stable()
        moves, unowned = self._cost_since(start)
        return RealCost(
            rebalances=self._generation() - generation,
            moves=moves,
            unowned_seconds=unowned,
            loads=self.loads(),
        )

    def loads(self) -> list[int]:
        """Return the loads of the members, in descending order."""
        found = Counter({client: 0 for client, one in self._members.items() if one.is_up})
        for (_, number), client in self._owners().items():
            found[client] += self.group.weights[number] if self.group.weights else 1
        return sorted(found.values(), reverse=True)

    def close(self) -> None:
        """Stop all members."""
        for client, member in self._members.items():
            if member.is_up:
                with suppress(RuntimeError, TimeoutError):
                    self._stop(client, crashes=True)

    # ---- Members -----------------------------------------------------------------

    def _running(self) -> list[RunningConsumer | ClientProcess]:
        return [one.consumers[-1] for one in self._members.values() if one.is_up]

    def _rolling_restart(self, event: RollingRestart) -> None:
        if event.to is not None:
            self._assignor = ",".join(event.to.assignors)
            self._is_static = self._is_static or bool(event.to.is_static)
        for client in [one for one, member in self._members.items() if member.is_up]:
            at = time.time() + event.downtime
            self._stop(client)
            self._start(client, at=at)
            # Restarts are not synchronous with heartbeats.
            time.sleep(event.pause + self._draw.random() * self.times.consumer_heartbeat)

    def _start(self, client: str, at: float = 0.0) -> None:
        member, millis = self._members[client], round(1000 * self.times.heartbeat)
        consumer: RunningConsumer | ClientProcess
        if self.group.library == "java":
            time.sleep(max(0.0, at - time.time()))
            profile = Profile(
                client=client,
                topics=tuple(member.topics),
                assignor=self._assignor,
                instance=client if self._is_static else None,
                heartbeat_millis=millis,
                session_millis=10_000 if client in self.group.crashed else _SESSION_MILLIS,
            )
            consumer = RunningConsumer(self._bootstrap, self.name, profile)
        else:
            # The process loads its libraries before its consumer starts.
            consumer = ClientProcess(
                self.group.library,
                self._bootstrap,
                self.name,
                self._assignor,
                member.topics,
                settings={
                    "client": client,
                    "instance": client if self._is_static else None,
                    "heartbeat_millis": millis,
                    "start_at": at,
                },
            )
            time.sleep(max(0.0, at - time.time()))
        member.consumers.append(consumer)
        member.is_up, member.is_static = True, self._is_static

    def _stop(self, client: str, *, crashes: bool = False) -> None:
        member = self._members[client]
        member.is_up = False
        consumer = member.consumers[-1]
        if not member.is_static:
            member.left_at = time.time()
        if isinstance(consumer, ClientProcess):
            consumer.end()
        elif crashes or member.is_static:
            consumer.abandon()
        else:
            consumer.leave()

    # ---- Observation -------------------------------------------------------------

    def _log(self) -> Iterator[tuple[float, str, str, frozenset[tuple[str, int]]]]:
        """Yield time, client, sign and partitions of each assignment and revocation."""
        lines = [
            (int(at), sign == "+", number, client, sign, names)
            for client, member in self._members.items()
            for consumer in member.consumers
            for number, line in enumerate(list(consumer.ownership))
            for sign, at, *names in [line.split()]
        ]
        for at, _, _, client, sign, names in sorted(lines):
            pairs = (name.rsplit(":", 1) for name in names)
            yield at / 1000, client, sign, frozenset((topic, int(n)) for topic, n in pairs)

    def _owners(self) -> dict[tuple[str, int], str]:
        """Return the owner of each partition, as the consumers report it."""
        owners: dict[tuple[str, int], str] = {}
        for _, client, sign, tps in self._log():
            if sign == "+":
                owners |= dict.fromkeys(tps, client)
                continue
            lost = [
                tp for tp, one in owners.items() if one == client and (sign == "." or tp in tps)
            ]
            for tp in lost:
                del owners[tp]
        return owners

    def _cost_since(self, start: float) -> tuple[int, float]:
        """Return the moves, and the seconds without an owner over all partitions.

        A partition of a member that has left, and has no assignment since its return, is placed.
        """
        owner: dict[tuple[str, int], str] = {}
        released: dict[tuple[str, int], float] = {}
        assigned_at: dict[str, float] = {}
        moves, unowned = 0, 0.0
        for at, client, sign, tps in self._log():
            if sign != "+":
                owned = [tp for tp, one in owner.items() if one == client and tp not in released]
                released |= {tp: at for tp in owned if sign == "." or tp in tps}
                continue
            for tp in tps:
                last = owner.get(tp)
                if at >= start and last is not None:
                    unowned += at - released.get(tp, at)
                    left_at = self._members[last].left_at
                    has_left = assigned_at.get(last, 0.0) <= left_at <= at
                    moves += last != client and not has_left
                owner[tp] = client
                released.pop(tp, None)
            assigned_at[client] = at
        return moves, unowned

    def _await_stable(self, *, complete: bool = True) -> None:
        """Wait until consumers and coordinator agree on the owners, and keep them for 1 s."""
        deadline = time.monotonic() + _STABLE_SECONDS
        before: dict[str, frozenset[tuple[str, int]]] | None = None
        partitions = {
            (topic, n) for topic, count in self.group.topics.items() for n in range(count)
        }
        while True:
            owners = self._owners()
            view = self._admin.await_group(self.name, lambda one: one.is_stable)
            members = {client: one.assigned for client, one in view.members.items()}
            found = {one: frozenset(tp for tp in owners if owners[tp] == one) for one in members}
            if found == members == before and (set(owners) == partitions or not complete):
                return
            before = members
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} is not stable: {members}, {owners}")
            time.sleep(1.0)

    def _generation(self) -> int:
        """Return the generation or epoch of the group."""
        view = self._admin.group(self.name)
        if view.epoch is not None:
            return view.epoch
        running = [one for one in self._running() if isinstance(one, RunningConsumer)]
        if running:
            return max(one.membership.generation for one in running)
        return max(
            one.generation for one in observed_rebalances(self._bootstrap, TOPICS)[self.name]
        )
