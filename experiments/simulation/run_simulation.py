"""Run a simulation script: start the members, apply the events, and add up the costs."""

from dataclasses import dataclass, replace
from functools import partial

from kassay.experiments.simulation.assignor_policies import Policy
from kassay.experiments.simulation.protocol_clients import (
    ClassicProtocolClient,
    Consumer,
    ConsumerProtocolClient,
)
from kassay.experiments.simulation.script import Action, MemberPlan, Script, ScriptEvent
from kassay.experiments.simulation.simulated_cluster import Environment, NewId
from kassay.experiments.simulation.simulation_result import ConsumedPartitions, SimulationResult
from kassay.reference.assignors import RebalanceProtocol
from kassay.reference.coordinator.classic_protocol_coordinator import numbered_member_ids
from kassay.reference.model.topic_partitions import Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialMember:
    """Member of the initial group of a simulation, with its client id in the script."""

    client: str
    id: str
    owned: Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialGroup:
    """Group that is stable at the start of a simulation."""

    generation: int
    members: tuple[InitialMember, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCost:
    """Cost of the part of a simulation between two times.

    ``rebalances`` is the number of new generations or epochs, ``unowned_seconds`` the number of
    partition-seconds. ``stopped_seconds`` is the number of seconds in which no member consumes
    any partition.
    """

    rebalances: int
    moves: int
    unowned_seconds: float
    stopped_seconds: float


class Simulation:
    """Simulation of a script with one policy, from an empty or a stable group."""

    def __init__(
        self,
        script: Script,
        policy: Policy,
        *,
        initial_group: InitialGroup | None = None,
        new_id: NewId | None = None,
        ownership: ConsumedPartitions | None = None,
    ) -> None:
        self.script = script
        numbered = numbered_member_ids()
        self.environment = Environment(
            script,
            policy,
            new_id or (lambda client, _: numbered(client)),
            ownership or ConsumedPartitions(),
        )
        self.broker = self.environment.broker
        self.clock = self.environment.clock
        self._failover_timer = self.clock.timer(self._end_failover)
        self._topic_plans = {plan.name: plan for plan in script.topics}
        for plan in script.topics:
            self.environment.add_topic(plan)
        self.broker.update_topics(self.environment.topics.values())
        self.consumers: dict[str, Consumer] = {}
        if initial_group is not None:
            self._continue_group(initial_group)
        for member in script.members:
            if member.id not in self.consumers:
                self.clock.after(member.start_at, self._new_consumer(member).start)
        for event in script.events:
            self.clock.after(event.at, partial(self._apply, event))

    def run(self) -> SimulationResult:
        """Run the script to its end, and compute the totals."""
        end = self.script.until
        self.clock.run(min(end, self.script.measured_from - 1))
        start = self._totals()
        offsets = self.environment.offsets
        offsets.max_lag = 0
        self.clock.run(end)
        result = self.environment.result
        result.moves, result.unowned_ms, result.unowned_messages, result.reread_messages = (
            after - before for after, before in zip(self._totals(), start, strict=True)
        )
        result.lag = offsets.lag(self.clock.now)
        result.max_lag = offsets.max_lag
        return result

    def run_segment(self, end: int) -> SegmentCost:
        """Run the script to the time ``end`` in ms, and return the cost since the last call."""
        before, epoch = self._totals(), self.broker.generation
        stopped = self.environment.ownership.stopped_ms
        self.clock.run(end)
        after = self._totals()
        return SegmentCost(
            rebalances=self.broker.generation - epoch,
            moves=after[0] - before[0],
            unowned_seconds=(after[1] - before[1]) / 1000,
            stopped_seconds=(self.environment.ownership.stopped_ms - stopped) / 1000,
        )

    def _totals(self) -> tuple[int, int, int, int]:
        ownership = self.environment.ownership
        ownership.close(self.clock.now)
        return (
            ownership.moves,
            ownership.unowned_ms,
            ownership.unowned_messages,
            self.environment.offsets.reread_messages,
        )

    def _continue_group(self, initial: InitialGroup) -> None:
        plans = {plan.id: plan for plan in self.script.members}
        classic, modern = [], []
        for member in initial.members:
            self.environment.client_ids[member.id] = member.client
            consumer = self._new_consumer(plans[member.client])
            consumer.continue_membership(member.id, member.owned, initial.generation)
            if isinstance(consumer, ClassicProtocolClient):
                classic.append(consumer.member_metadata())
            elif isinstance(consumer, ConsumerProtocolClient):
                modern.append(consumer.member())
        leader = next(iter(self.consumers.values()), None)
        if isinstance(leader, ClassicProtocolClient):
            leader.assigned_counts = self.environment.partition_counts()
        self.environment.ownership.set_members(self.consumers)
        policy = self.environment.policy
        self.broker.adopt(
            classic,
            modern,
            generation=initial.generation,
            protocol=policy.name,
            has_user_data=policy.name == "cooperative-sticky"
            and any(plan.sends_user_data for plan in self.script.members),
        )

    def _new_consumer(self, plan: MemberPlan) -> Consumer:
        policy = self.environment.policy
        if plan.assignors:
            policy = self.environment.policy_of(plan.assignors[0])
        is_classic = policy.protocol is not RebalanceProtocol.CONSUMER
        client = ClassicProtocolClient if is_classic else ConsumerProtocolClient
        consumer = self.consumers[plan.id] = client(self.environment, plan)
        return consumer

    def _apply(self, event: ScriptEvent) -> None:
        add_note = self.environment.add_note
        if event.action is Action.FAIL_OVER:
            add_note("broker", f"is lost for {event.duration} ms")
            if self.broker.is_up:
                self.broker.crash()
                self._failover_timer.start(event.duration)
        elif event.action is Action.GROW:
            add_note(event.topic, f"grows to {event.partitions} partitions")
            plan = self._topic_plans[event.topic]
            self.environment.add_topic(replace(plan, partitions=event.partitions))
            # The broker knows its own topics; a leader asks for them from time to time.
            self.broker.update_topics(self.environment.topics.values())
            self.clock.after(self.script.settings.metadata, self._refresh_metadata)
        elif event.action is Action.JOIN and event.new_member is not None:
            add_note(event.member, "joins")
            self.clock.after(0, self._new_consumer(event.new_member).start)
        else:
            duration = f" for {event.duration} ms" if event.duration else ""
            add_note(event.member, f"{event.action}{duration}")
            if event.new_member is None:
                _apply_to_consumer(self.consumers[event.member], event)
            else:
                self.consumers[event.member].leave()
                self._new_consumer(event.new_member).start_after(event.duration)

    def _end_failover(self) -> None:
        self.broker.start()
        self.environment.add_note("broker", f"has taken over, group {self.broker.state}")

    def _refresh_metadata(self) -> None:
        for consumer in self.consumers.values():
            if isinstance(consumer, ClassicProtocolClient) and consumer.is_up:
                consumer.refresh_metadata()


def _apply_to_consumer(consumer: Consumer, event: ScriptEvent) -> None:
    if event.action is Action.LEAVE:
        consumer.leave()
    elif event.action is Action.CRASH:
        consumer.crash()
    elif event.action is Action.SUBSCRIBE:
        consumer.subscribe(event.topics)
    elif event.action is Action.RESTART:
        consumer.leave()
        consumer.start_after(event.duration)
    else:
        consumer.suspend(event.duration, frozen=event.action is Action.FREEZE)


def simulate(script: Script, policy: Policy) -> SimulationResult:
    """Simulate a script with a policy, and return the result."""
    return Simulation(script, policy).run()
