"""One run: script, clock, broker, consumers, and the record of what they do."""

import gc
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from kassay.experiments.simulation.broker import Broker
from kassay.experiments.simulation.classic_client import ClassicProtocolClient
from kassay.experiments.simulation.consumer import Consumer
from kassay.experiments.simulation.consumer_client import ConsumerProtocolClient
from kassay.experiments.simulation.ownership_intervals import OwnershipIntervals
from kassay.experiments.simulation.policies import GroupProtocol, Policy
from kassay.experiments.simulation.rebalance_documents import RebalanceRecorder
from kassay.experiments.simulation.script import Action, MemberPlan, Script, ScriptEvent
from kassay.experiments.simulation.simulation_result import SimulationResult, Step, TimelineNote
from kassay.experiments.simulation.traffic import Traffic
from kassay.reference.coordinator.classic.coordinator import counted_ids
from kassay.reference.coordinator.classic.states import GroupState
from kassay.reference.coordinator.clock import Clock
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import LivelockError, UpstreamError
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.topic_partitions import Partitions
from kassay.reference.protocol.messages import JoinResponse

_STUCK = 1 << 40
"""Longer than any run, in ms: how long an assignor takes that never returns."""
_OBJECTS_BETWEEN = 100_000
"""New objects between two visits of the garbage collector, during a run."""


class Simulation:
    """Everything there is in one run.

    Parameters
    ----------
    script
        What happens.
    policy
        Who assigns, and by which protocol.
    keep
        Whether to keep who consumed what and when, to draw it.
    ids
        Makes the id of a new member from its client id; None to count them.
    sink
        Takes the rebalances instead of the history, for runs too long to keep them.
    """

    def __init__(
        self,
        script: Script,
        policy: Policy,
        *,
        keep: bool = False,
        ids: Callable[[str], str] | None = None,
        sink: Callable[[Step], None] | None = None,
    ) -> None:
        self.script = script
        self.policy = policy
        self.settings = script.settings
        self.broker_config = script.broker
        self.clock = Clock()
        self._taking_over = self.clock.timer(self._take_over)
        self.ledger = OwnershipIntervals(keep=keep)
        self.topics: dict[str, Topic] = {}
        self.history = SimulationResult(script=script.name, policy=policy.name, until=script.until)
        self._draw = random.Random(script.seed).random  # noqa: S311 - a simulation's
        self._ids = ids or counted_ids()
        self.rebalances = RebalanceRecorder(
            policy, self.clock, self.topics, script.name, sink or self.history.steps.append
        )
        self._plans = {plan.name: plan for plan in script.topics}
        served = replace(policy, assign=self._assign_on_broker)
        self.broker = Broker(
            self.clock,
            served,
            lambda: tuple(self.topics.values()),
            config=script.broker,
            new_id=self.new_id,
            watch=self._watch,
        )
        self.traffic = Traffic(self.broker.committed)
        for plan in script.topics:
            self._add_topic(plan.name, plan.partitions)
        self.broker.refresh()
        self.consumers: dict[str, Consumer] = {}
        for member in script.members:
            self._admit(member, member.starts)
        for event in script.events:
            self.clock.after(event.at, self._happening(event))

    def run(self, until: int | None = None) -> SimulationResult:
        """Let time pass, to the script's end or a moment before it, and close the accounts."""
        end = self.script.until if until is None else until
        with _collecting_rarely():
            self.clock.run(min(end, self.script.begins - 1))
            before = self._counts()
            self.traffic.lag_peak = 0
            self.clock.run(end)
        history = self.history
        history.moves, history.stopped_ms, history.unread, history.rereads = (
            now - then for now, then in zip(self._counts(), before, strict=True)
        )
        history.stretches = self.ledger.stretches or []
        history.lag = self.traffic.lag(self.clock.now)
        history.lag_peak = self.traffic.lag_peak
        return history

    def _counts(self) -> tuple[int, int, int, int]:
        """Return what has been spent so far."""
        self.ledger.close(self.clock.now)
        ledger = self.ledger
        return ledger.moves, ledger.stopped_ms, ledger.unread, self.traffic.rereads

    def tell(self, who: str, what: str) -> None:
        """Note something for the timeline."""
        self.history.notes.append(TimelineNote(self.clock.now, who, what))

    def new_id(self, client: str) -> str:
        """Make a member id; none comes twice, not after a fail-over either."""
        member_id = self._ids(client)
        self.rebalances.clients[member_id] = client
        return member_id

    def latency(self) -> int:
        """Time from a request to its answer."""
        settings = self.settings
        return settings.latency + (self.chance(settings.jitter) if settings.jitter else 0)

    def chance(self, most: int) -> int:
        """Draw a time from 0 to ``most``, of which each is as likely."""
        return int(self._draw() * (most + 1)) if most else 0

    # ---- Events ---------------------------------------------------------------------

    def _admit(self, plan: MemberPlan, starts: int) -> None:
        kind = (
            ConsumerProtocolClient
            if self.policy.protocol is GroupProtocol.CONSUMER
            else ClassicProtocolClient
        )
        consumer = self.consumers[plan.id] = kind(self, plan)
        self.clock.after(starts, consumer.start)

    def _happening(self, event: ScriptEvent) -> Callable[[], None]:
        return lambda: self._happen(event)

    def _happen(self, event: ScriptEvent) -> None:
        if event.act is Action.FAIL_OVER:
            self.tell("broker", f"is lost for {event.lasts} ms")
            if self.broker.is_up:
                self.broker.crash()
                self._taking_over.start(event.lasts)
        elif event.act is Action.GROW:
            self.tell(event.topic, f"grows to {event.partitions} partitions")
            self._add_topic(event.topic, event.partitions)
            self.clock.after(self.settings.metadata, self._notice_metadata)
        elif event.act is Action.JOIN and event.joins is not None:
            self.tell(event.member, "joins")
            self._admit(event.joins, 0)
        else:
            self._happen_to(self.consumers[event.member], event)

    def _happen_to(self, consumer: Consumer, event: ScriptEvent) -> None:
        lasts = f" for {event.lasts} ms" if event.lasts else ""
        self.tell(event.member, f"{event.act}{lasts}")
        if event.act is Action.LEAVE:
            consumer.leave()
        elif event.act is Action.CRASH:
            consumer.crash()
        elif event.act is Action.SUBSCRIBE:
            consumer.subscribe(event.topics)
        elif event.act is Action.RESTART:
            consumer.leave()
            consumer.start_after(event.lasts)
        else:
            consumer.hold_up(event.lasts, frozen=event.act is Action.FREEZE)

    def _take_over(self) -> None:
        self.broker.take_over()
        self.tell("broker", f"has taken over, group {self.broker.state}")

    def _add_topic(self, name: str, partitions: int) -> None:
        plan, now = self._plans[name], self.clock.now
        before = self.topics[name].partitions if name in self.topics else 0
        if partitions < before or (partitions == before and name in self.topics):
            return
        self.topics[name] = Topic(name=name, partitions=partitions, id=plan.id)
        self.ledger.add_topic(name, partitions, rate=plan.rate, now=now)
        self.traffic.add_topic(replace(plan, partitions=partitions), now)

    def _notice_metadata(self) -> None:
        self.broker.refresh()
        for consumer in self.consumers.values():
            if isinstance(consumer, ClassicProtocolClient) and consumer.is_up:
                consumer.notice_metadata()

    def partition_counts(self) -> dict[str, int]:
        """Count the partitions of every topic now."""
        return {name: topic.partitions for name, topic in self.topics.items()}

    # ---- Rebalances -----------------------------------------------------------------

    def assign(
        self, leader: ClassicProtocolClient, response: JoinResponse
    ) -> dict[str, Partitions] | None:
        """Have the leader assign; None if its assignor never returns or throws."""
        group = self.rebalances.of_members(response.members)
        answer = self._assign(group, response.generation)
        if isinstance(answer, Assignment):
            return dict(answer)
        if isinstance(answer, LivelockError):
            leader.hold_up(_STUCK, frozen=False)
        else:
            leader.leave()
        return None

    def _assign(self, group: Group, generation: int) -> Assignment | LivelockError | UpstreamError:
        names = tuple(self.rebalances.clients[member.id] for member in group.members)
        self.ledger.present(names)
        self.history.members.append((self.clock.now, names))
        answer = self.rebalances.assign(group, generation)
        if not isinstance(answer, Assignment):
            verb = "never returns" if isinstance(answer, LivelockError) else "throws"
            self.tell(self.policy.name, f"{verb} in generation {generation}: {answer}")
        return answer

    def _assign_on_broker(self, group: Group) -> Assignment:
        generation = self.broker.generation
        answer = self._assign(group, generation)
        if isinstance(answer, Assignment):
            self.rebalances.settle(generation)
            return answer
        return Assignment({member.id: member.owned for member in group.members})

    def _watch(self, now: int, state: GroupState) -> None:
        self.history.notes.append(TimelineNote(now, "group", str(state)))
        if state is GroupState.STABLE:
            self.rebalances.settle(self.broker.generation)


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Look for garbage less often: a run makes next to no cycles, but objects by the thousand.

    Going through them as often as usual takes a fifth of the time.
    """
    usual = gc.get_threshold()
    if usual[0]:
        gc.set_threshold(max(usual[0], _OBJECTS_BETWEEN), *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def simulate(script: Script, policy: Policy, *, keep: bool = False) -> SimulationResult:
    """Run a script under a policy.

    Parameters
    ----------
    script
        What happens.
    policy
        Who assigns, and by which protocol.
    keep
        Whether to keep who consumed what and when, to draw it.

    Examples
    --------
    >>> from kassay.experiments.simulation.script_parser import parse_script
    >>> from kassay.experiments.simulation.policies import POLICIES
    >>> script = parse_script(
    ...     "{topics: {t: 4}, until: 60s, members: [{id: c, count: 2, topics: [t]}]}", "two.yaml"
    ... )
    >>> history = simulate(script, POLICIES["range"])
    >>> [(step.generation, step.assignment.loads()) for step in history.settled]
    [(1, {'c0-00000001': 2, 'c1-00000002': 2})]
    """
    return Simulation(script, policy, keep=keep).run()
