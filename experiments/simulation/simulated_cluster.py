"""Shared environment of simulated consumers: clock, topics, offsets and broker.

The simulated broker runs the group coordinator, and can crash and restart.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from kassay.experiments.implementations.run_assignor import count_withheld_partitions
from kassay.experiments.simulation.assignor_policies import MixedLibraries, Policy, policy_named
from kassay.experiments.simulation.script import Script, TopicPlan
from kassay.experiments.simulation.simulation_result import (
    ConsumedPartitions,
    SimulatedRebalance,
    SimulationResult,
    TimelineNote,
)
from kassay.reference.assignors import RebalanceProtocol
from kassay.reference.coordinator import consumer_protocol_coordinator
from kassay.reference.coordinator.classic_protocol_coordinator import ClassicCoordinator, GroupState
from kassay.reference.coordinator.consumer_protocol_coordinator import ConsumerGroup, ConsumerMember
from kassay.reference.coordinator.runtime import Clock, Log
from kassay.reference.model.assignment import Assignment, LivelockError
from kassay.reference.model.errors import UpstreamError
from kassay.reference.model.group import NO_GENERATION, Group, GroupStatus, Member, Protocol, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol.group_messages import (
    CONSUMERS,
    ErrorCode,
    GroupMetadata,
    JoinedMember,
    JoinReply,
    JoinRequest,
    JoinResponse,
    MemberMetadata,
    Offsets,
    StickyUserData,
    SyncReply,
    SyncRequest,
    SyncResponse,
)

Coordinator = ClassicCoordinator | consumer_protocol_coordinator.ConsumerCoordinator


class Broker:
    """Simulated broker that coordinates one group.

    The group changes to the consumer protocol when a first member with this protocol joins. It
    changes back to the classic protocol when the last such member leaves.
    """

    def __init__(self, environment: "Environment") -> None:
        self.log = Log()
        self._environment = environment
        self._classic_members: consumer_protocol_coordinator.ClassicMembers | None = None
        self.classic: ClassicCoordinator | None = None
        self.consumer: consumer_protocol_coordinator.ConsumerCoordinator | None = None
        self.is_up = False

    def start(self) -> None:
        """Start the broker, which loads the group from the log and coordinates it."""
        self.is_up = True
        if self._environment.policy.protocol is RebalanceProtocol.CONSUMER:
            self._start_consumer_protocol()
        else:
            self.classic = self._new_classic_coordinator()

    def _start_consumer_protocol(self) -> consumer_protocol_coordinator.ConsumerCoordinator:
        environment = self._environment
        self.consumer = consumer_protocol_coordinator.ConsumerCoordinator(
            "group",
            environment.clock,
            environment.assign_on_broker,
            environment.topics.values(),
            self.log,
            config=environment.broker_config,
            downgrade=self._downgrade,
        )
        self._classic_members = consumer_protocol_coordinator.ClassicMembers(
            self.consumer, environment.new_member_id
        )
        return self.consumer

    def _new_classic_coordinator(self) -> ClassicCoordinator:
        environment = self._environment
        return ClassicCoordinator(
            "group",
            environment.clock,
            self.log,
            config=environment.broker_config,
            new_id=environment.new_member_id,
            on_state_change=environment.on_state_change,
        )

    def _upgrade(self, old: ClassicCoordinator) -> None:
        """Change a classic group to the consumer protocol, or raise UpgradeRefusedError."""
        group, members = old.group, consumer_protocol_coordinator.converted_members(old.group)
        self._environment.add_note(
            "group", f"changes to the consumer protocol in epoch {group.generation}"
        )
        self.classic = None
        upgraded = self._start_consumer_protocol()
        if members:
            upgraded.adopt(members, epoch=group.generation)
        else:
            upgraded.group.epoch = max(upgraded.group.epoch, group.generation)
        old.unload()

    def _downgrade(self, group: ConsumerGroup) -> None:
        environment = self._environment
        old, self.consumer, self._classic_members = self.consumer, None, None
        if old is not None:
            old.unload()
        environment.add_note("group", f"changes to the classic protocol in epoch {group.epoch}")
        # The first classic rebalance after a downgrade ignores what sticky members report as
        # their last assignment: three of three groups on a broker of release 4.4.0.
        environment.ignored_data = dict(environment.user_data)
        # The records of the old group are no longer valid.
        self.log.clear()
        self.classic = self._new_classic_coordinator()
        self.classic.downgrade(
            [
                MemberMetadata(
                    one.joined._replace(member_id=one.id), Partitions.of(sorted(one.assigned))
                )
                for one in group.members.values()
                if one.joined is not None
            ],
            group.epoch,
        )

    @property
    def _coordinator(self) -> Coordinator | None:
        return self.consumer if self.classic is None else self.classic

    def crash(self) -> None:
        """Stop the coordinator. Pending requests fail with NOT_COORDINATOR."""
        self.is_up = False
        if self._coordinator is not None:
            self._coordinator.unload()
        self.classic = self.consumer = self._classic_members = None

    def update_topics(self, topics: Iterable[Topic]) -> None:
        """Send the current topics to the coordinator of the consumer protocol."""
        if self.consumer is not None:
            self.consumer.update_topics(topics)

    def adopt(
        self,
        classic: Sequence[MemberMetadata],
        modern: Sequence[ConsumerMember],
        *,
        generation: int,
        protocol: str,
        has_user_data: bool = False,
    ) -> None:
        """Load a stable group, with the first member of the classic protocol as its leader."""
        if self.classic is not None and classic:
            leader, group_id = classic[0].request.member_id, self.classic.group.id
            kind, members = CONSUMERS, tuple(classic)
            self.classic.adopt(
                GroupMetadata(group_id, kind, generation, protocol, leader, 0, members),
                has_user_data=has_user_data,
            )
        elif self.consumer is not None:
            self.consumer.adopt(modern, epoch=generation)

    @property
    def generation(self) -> int:
        """Return the generation or epoch of the group, or -1 if the broker has no coordinator."""
        if self.classic is not None:
            return self.classic.group.generation
        return -1 if self.consumer is None else self.consumer.group.epoch

    @property
    def state(self) -> str:
        """Return the state of the group, or ``no coordinator`` after a crash."""
        coordinator = self._coordinator
        return "no coordinator" if coordinator is None else str(coordinator.group.state)

    def committed(self, partition: TopicPartition) -> int:
        """Return the committed offset of a partition, or 0 if no offset is committed."""
        return 0 if self._coordinator is None else self._coordinator.offsets.get(partition, 0)

    @property
    def _classic_side(
        self,
    ) -> consumer_protocol_coordinator.ClassicMembers | ClassicCoordinator | None:
        return self._classic_members or self.classic

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        """Handle a JoinGroup request."""
        if self._classic_side is None:
            reply(JoinResponse(ErrorCode.NOT_COORDINATOR, request.member_id))
        else:
            self._classic_side.join(request, reply)

    def sync(self, request: SyncRequest, reply: SyncReply) -> None:
        """Handle a SyncGroup request."""
        if self._classic_side is None:
            reply(SyncResponse(ErrorCode.NOT_COORDINATOR))
        else:
            self._classic_side.sync(request, reply)

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        """Handle a Heartbeat request of the classic protocol."""
        if self._classic_members is not None:
            return self._classic_members.heartbeat(member_id, generation)
        if self.classic is None:
            return ErrorCode.NOT_COORDINATOR
        return self.classic.heartbeat(member_id, generation, instance_id)

    def leave(self, member_id: str) -> None:
        """Handle a LeaveGroup request of a dynamic member."""
        if self._classic_side is not None:
            self._classic_side.leave(member_id)

    def consumer_heartbeat(
        self, heartbeat: consumer_protocol_coordinator.Heartbeat
    ) -> consumer_protocol_coordinator.HeartbeatResponse:
        """Handle a ConsumerGroupHeartbeat request. A classic group first changes its protocol."""
        if self.classic is not None:
            try:
                self._upgrade(self.classic)
            except consumer_protocol_coordinator.UpgradeRefusedError as error:
                self._environment.add_note("group", f"refuses the consumer protocol: {error}")
                return consumer_protocol_coordinator.HeartbeatResponse(ErrorCode.GROUP_ID_NOT_FOUND)
        if self.consumer is None:
            return consumer_protocol_coordinator.HeartbeatResponse(ErrorCode.NOT_COORDINATOR)
        return self.consumer.heartbeat(heartbeat)

    def commit(self, member_id: str, generation: int, offsets: Offsets) -> ErrorCode:
        """Handle an OffsetCommit request of a member in a generation or epoch."""
        if self._coordinator is None:
            return ErrorCode.NOT_COORDINATOR
        return self._coordinator.commit(member_id, generation, offsets)


class PartitionOffsets:
    """Offsets up to which each partition is produced and read, in simulated time."""

    def __init__(self, committed: Callable[[TopicPartition], int]) -> None:
        self.reread_messages = 0
        self.max_lag = 0
        self._committed = committed
        self._rates: dict[TopicPartition, int] = {}
        self._created_at: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._max_positions: dict[TopicPartition, int] = {}

    @property
    def is_active(self) -> bool:
        """Return whether any topic has a message rate above 0."""
        return bool(self._rates)

    def add_topic(self, plan: TopicPlan, now: int) -> None:
        """Start producing messages to the new partitions of a topic."""
        for number in range(plan.partitions if plan.rate else 0):
            partition = TopicPartition(plan.name, number)
            if partition not in self._rates:
                self._rates[partition] = plan.rate
                self._created_at[partition] = now
                self._max_positions[partition] = 0

    def _end_offset(self, partition: TopicPartition, now: int) -> int:
        return self._rates[partition] * (now - self._created_at[partition]) // 1000

    def seek_to_committed(self, partitions: Partitions) -> None:
        """Set the read positions of partitions to their committed offsets."""
        if self.is_active:
            for partition in partitions:
                if partition in self._rates:
                    offset = self._committed(partition)
                    self.reread_messages += max(0, self._max_positions[partition] - offset)
                    self._positions[partition] = offset

    def read(self, partitions: Partitions, limit: int | None, now: int) -> int:
        """Read at most ``limit`` messages from partitions, and return the number of read ones."""
        total = 0
        for partition in partitions:
            if partition not in self._rates:
                continue
            position = self._positions[partition]
            available = self._end_offset(partition, now) - position
            count = available if limit is None else min(available, limit - total)
            self._positions[partition] = position + count
            self._max_positions[partition] = max(self._max_positions[partition], position + count)
            total += count
        return total

    def positions(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """Return the read positions of partitions."""
        return {p: self._positions[p] for p in partitions if p in self._positions}

    def lag(self, now: int) -> int:
        """Count the messages that are produced but not read, and update ``max_lag``."""
        lag = sum(self._end_offset(p, now) - self._max_positions[p] for p in self._rates)
        self.max_lag = max(self.max_lag, lag)
        return lag


NewId = Callable[[str, bool], str]
"""Function that creates a member id. Its arguments are the client id, and whether the member uses
the classic protocol."""


class Environment:
    """Shared state of a simulation: clock, topics, broker, offsets and result."""

    def __init__(
        self, script: Script, policy: Policy, new_id: NewId, ownership: ConsumedPartitions
    ) -> None:
        self.policy = policy
        self.settings = script.settings
        self.broker_config = script.broker
        self.clock = Clock()
        self.ownership = ownership
        self.topics: dict[str, Topic] = {}
        self.result = SimulationResult(script=script.name, policy=policy.name, until=script.until)
        self._random = random.Random(script.seed).random  # noqa: S311 - not for security
        self._new_id = new_id
        self._last: SimulatedRebalance | None = None
        self.client_ids: dict[str, str] = {}  # by member id
        self.user_data: dict[str, StickyUserData] = {}
        """Last assignment per member. At the next rebalance, these are its owned partitions."""
        self.ignored_data: dict[str, StickyUserData] = {}  # last assignments before a downgrade
        plans = [*script.members, *(event.new_member for event in script.events)]
        libraries = {one.id: one.library for one in plans if one is not None and one.library}
        self._libraries = MixedLibraries(libraries, policy) if libraries else None
        self.broker = Broker(self)
        self.broker.start()
        self.offsets = PartitionOffsets(self.broker.committed)

    def add_note(self, source: str, text: str) -> None:
        """Add a note to the simulation's timeline."""
        self.result.notes.append(TimelineNote(self.clock.now, source, text))

    def new_member_id(self, client: str, *, is_classic: bool = True) -> str:
        """Create a member id that is unique in the simulation."""
        member_id = self._new_id(client, is_classic)
        self.client_ids[member_id] = client
        return member_id

    def latency(self) -> int:
        """Draw the time from a request to its response, in milliseconds."""
        settings = self.settings
        return settings.latency + (self.random_delay(settings.jitter) if settings.jitter else 0)

    @cached_property
    def heartbeat_phase(self) -> int:
        """Draw the time in ms from the start to the first heartbeats of the initial group."""
        return self.random_delay(self.settings.heartbeat)

    def random_delay(self, maximum: int) -> int:
        """Draw a uniformly distributed random delay from 0 to ``maximum`` milliseconds."""
        return int(self._random() * (maximum + 1)) if maximum else 0

    def add_topic(self, plan: TopicPlan) -> None:
        """Create a topic, or increase its number of partitions."""
        known = self.topics.get(plan.name)
        if known is not None and plan.partitions <= known.partitions:
            return
        now = self.clock.now
        self.topics[plan.name] = Topic(name=plan.name, partitions=plan.partitions, id=plan.id)
        self.ownership.add_topic(plan.name, plan.partitions, rate=plan.rate, now=now)
        self.offsets.add_topic(plan, now)

    def partition_counts(self) -> dict[str, int]:
        """Return the current partition count of every topic."""
        return {name: topic.partitions for name, topic in self.topics.items()}

    def policy_of(self, assignor: str | None) -> Policy:
        """Return the policy of the assignor that a classic group has selected."""
        return self.policy if assignor in (None, self.policy.name) else policy_named(assignor)

    def policy_of_leader(self, leader: str, generation: int, assignor: str | None) -> Policy:
        """Return the policy of the leader of a generation."""
        if self._libraries is None:
            return self.policy_of(assignor)
        clients = self.client_ids
        policy = self._libraries.leading_policy(leader, generation, clients)
        self.add_note(clients[leader], f"leads generation {generation} with {policy.name}")
        return policy

    def assign(
        self, group: Group, generation: int, policy: Policy
    ) -> Assignment | LivelockError | UpstreamError:
        """Run a policy on a group, record the rebalance, and return the result or failure."""
        clients = {member.id: self.client_ids[member.id] for member in group.members}
        self.ownership.set_members(clients.values())
        result: Assignment | LivelockError | UpstreamError
        try:
            result = policy.assign(group)
        except (LivelockError, UpstreamError) as failure:
            result = failure
            verb = "does not terminate" if isinstance(result, LivelockError) else "fails"
            self.add_note(policy.name, f"{verb} in generation {generation}: {result}")
        assignment = result if isinstance(result, Assignment) else None
        withheld = 1 if assignment is None else count_withheld_partitions(group, assignment)
        self._last = SimulatedRebalance(
            at=self.clock.now,
            generation=generation,
            group=replace(group, id=f"{self.result.script}/{generation}"),
            assignment=assignment,
            client_ids=clients,
            complete=not withheld,
        )
        self.result.rebalances.append(self._last)
        return result

    def group_of(self, joined: tuple[JoinedMember, ...], policy: Policy) -> Group:
        """Build the group that the leader passes to the assignor."""
        members = tuple(self._member(member, policy) for member in joined)
        return Group(topics=tuple(self.topics.values()), members=members)

    def _member(self, joined: JoinedMember, policy: Policy) -> Member:
        metadata = joined.metadata
        owned, generation = metadata.owned, metadata.generation
        if policy.protocol is not RebalanceProtocol.COOPERATIVE:
            data = metadata.user_data
            if data is None and policy.name != "sticky":
                data = self.user_data.get(joined.member_id)
            owned, generation = NO_PARTITIONS, NO_GENERATION
            if data is self.ignored_data.get(joined.member_id):
                data = None
            if data is not None and data.partitions is not None:
                owned, generation = data.partitions, data.generation
        return Member(
            id=joined.member_id,
            subscription=metadata.topics,
            owned=owned,
            generation=generation,
            instance_id=joined.instance_id,
            rack=metadata.rack,
        )

    def _mark_stable(self, generation: int) -> None:
        if self._last is not None and self._last.generation == generation:
            self._last.stable_at = self.clock.now

    def assign_on_broker(self, group: Group) -> Assignment:
        """Assign a group of the consumer protocol. If the assignor fails, keep the assignment."""
        generation = self.broker.generation
        policy = self.policy
        if self.broker.consumer is not None:
            requested = self.broker.consumer.group.preferred_assignor()
            status = GroupStatus(protocol=Protocol.CONSUMER, assignor=requested)
            policy = self.policy_of(status.registered_assignor)
        result = self.assign(group, generation, policy)
        if isinstance(result, Assignment):
            self._mark_stable(generation)
            return result
        return Assignment({member.id: member.owned for member in group.members})

    def on_state_change(self, _now: int, state: GroupState) -> None:
        """Add a note on the new state of a classic group, and record the time if it is stable."""
        self.add_note("group", str(state))
        if state is GroupState.STABLE:
            self._mark_stable(self.broker.generation)
