"""Environment that all simulated consumers share: clock, network delays, topics and broker."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from kassay.experiments.simulation.cluster.broker import Broker, Coordinator
from kassay.experiments.simulation.cluster.mixed_libraries import MixedLibraries, libraries_of
from kassay.experiments.simulation.cluster.partition_offsets import PartitionOffsets
from kassay.experiments.simulation.cluster.rebalance_recorder import RebalanceRecorder
from kassay.experiments.simulation.policies import POLICIES, Policy
from kassay.experiments.simulation.results.ownership_intervals import OwnershipIntervals
from kassay.experiments.simulation.results.simulation_result import (
    SimulatedRebalance,
    SimulationResult,
)
from kassay.experiments.simulation.scripts.script import Script, TopicPlan
from kassay.reference.assignors import RebalanceProtocol
from kassay.reference.coordinator.classic_coordinator import (
    ClassicCoordinator,
    numbered_member_ids,
)
from kassay.reference.coordinator.classic_group import GroupState
from kassay.reference.coordinator.consumer_coordinator import (
    ClassicMembers,
    ConsumerCoordinator,
    converted_members,
)
from kassay.reference.coordinator.runtime import Clock, Log
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import LivelockError, UpstreamError
from kassay.reference.model.group import Group, Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """Options of a simulation that its script does not contain."""

    keep_intervals: bool = False  # record ownership intervals, which drawing a timeline needs
    new_id: Callable[[str], str] | None = None  # creates a member id from a client id
    # Assignor of the broker after members of a classic group change to the consumer protocol.
    server_policy: Policy | None = None
    # Receives the rebalances instead of the result, for long runs.
    record: Callable[[SimulatedRebalance], None] | None = None


class Environment:
    """Shared state of one simulation: clock, topics, broker, offsets and result."""

    def __init__(self, script: Script, policy: Policy, options: SimulationOptions) -> None:
        self.policy = policy
        self._server_policy = options.server_policy or policy
        self.settings = script.settings
        self.broker_config = script.broker
        self.clock = Clock()
        self.ownership = OwnershipIntervals(keep=options.keep_intervals)
        self.topics: dict[str, Topic] = {}
        self.result = SimulationResult(script=script.name, policy=policy.name, until=script.until)
        self._random = random.Random(script.seed).random  # noqa: S311 - not for security
        self._new_id = options.new_id or numbered_member_ids()
        record = options.record or self.result.rebalances.append
        self.recorder = RebalanceRecorder(self.clock, self.topics, script.name, record)
        libraries = libraries_of(script)
        self._libraries = MixedLibraries(libraries, policy) if libraries else None
        self.broker = Broker(self._load_coordinator, self._convert)
        self.offsets = PartitionOffsets(self.broker.committed)

    def _load_coordinator(self, log: Log) -> Coordinator:
        clock, config = self.clock, self.broker_config
        if self.policy.protocol is RebalanceProtocol.CONSUMER:
            return self._new_consumer_coordinator(log)
        return ClassicCoordinator(
            "group",
            clock,
            log,
            config=config,
            new_id=self.new_member_id,
            on_state_change=self._on_state_change,
        )

    def _new_consumer_coordinator(self, log: Log) -> ConsumerCoordinator:
        return ConsumerCoordinator(
            "group",
            self.clock,
            self._assign_on_broker,
            self.topics.values(),
            log,
            config=self.broker_config,
        )

    def _convert(
        self, classic: ClassicCoordinator, log: Log
    ) -> tuple[ConsumerCoordinator, ClassicMembers]:
        group = classic.group
        self.add_note("group", f"changes to the consumer protocol in epoch {group.generation}")
        coordinator = self._new_consumer_coordinator(log)
        if group.members:
            coordinator.adopt(converted_members(group), epoch=group.generation)
        return coordinator, ClassicMembers(coordinator, self.new_member_id)

    def add_note(self, source: str, text: str) -> None:
        """Add a note to the simulation's timeline."""
        self.result.add_note(self.clock.now, source, text)

    def new_member_id(self, client: str) -> str:
        """Create a member id that is unique in the simulation."""
        member_id = self._new_id(client)
        self.recorder.client_ids[member_id] = client
        return member_id

    def latency(self) -> int:
        """Return a simulated network latency: milliseconds from a request to its response.

        The latency is that of the settings plus a random part of the jitter.
        """
        settings = self.settings
        return settings.latency + (self.random_delay(settings.jitter) if settings.jitter else 0)

    def random_delay(self, maximum: int) -> int:
        """Draw a uniformly distributed random delay from 0 to ``maximum`` milliseconds."""
        return int(self._random() * (maximum + 1)) if maximum else 0

    def add_topic(self, plan: TopicPlan) -> None:
        """Create a topic, or increase its partition count."""
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
        """Return the policy with the assignor that a classic group has selected."""
        own = assignor in (None, self.policy.name)
        return self.policy if own or assignor is None else POLICIES[assignor]

    def policy_of_leader(self, leader: str, generation: int, assignor: str | None) -> Policy:
        """Return the policy with which a member assigns the partitions of a generation."""
        if self._libraries is None:
            return self.policy_of(assignor)
        clients = self.recorder.client_ids
        policy = self._libraries.leading_policy(leader, generation, clients)
        self.add_note(clients[leader], f"leads generation {generation} with {policy.name}")
        return policy

    def assign(
        self, group: Group, generation: int, policy: Policy
    ) -> Assignment | LivelockError | UpstreamError:
        """Run a policy's assignor on a group, and record the rebalance.

        Return the assignment or the failure.
        """
        clients = tuple(self.recorder.client_ids[member.id] for member in group.members)
        self.ownership.set_members(clients)
        self.result.members.append((self.clock.now, clients))
        result = self.recorder.assign(group, generation, policy)
        if not isinstance(result, Assignment):
            verb = "does not terminate" if isinstance(result, LivelockError) else "fails"
            self.add_note(policy.name, f"{verb} in generation {generation}: {result}")
        return result

    def _assign_on_broker(self, group: Group) -> Assignment:
        generation = self.broker.generation
        result = self.assign(group, generation, self._server_policy)
        if isinstance(result, Assignment):
            self.recorder.mark_stable(generation)
            return result
        return Assignment({member.id: member.owned for member in group.members})

    def _on_state_change(self, now: int, state: GroupState) -> None:
        self.result.add_note(now, "group", str(state))
        if state is GroupState.STABLE:
            self.recorder.mark_stable(self.broker.generation)
