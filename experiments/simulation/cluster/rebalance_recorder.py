"""Record every rebalance of a simulation as a group document with its assignment."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from kassay.experiments.simulation.policies import Policy
from kassay.experiments.simulation.results.simulation_result import SimulatedRebalance
from kassay.reference.assignors import RebalanceProtocol
from kassay.reference.coordinator.runtime import Clock
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import LivelockError, UpstreamError
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.reference.protocol.member_messages import JoinedMember, StickyUserData


class RebalanceRecorder:
    """Recorder that runs assignors, and stores each group with its assignment.

    ``topics`` maps names to current topics; the simulation changes it. The name of the
    script is the prefix of group ids. ``record`` receives each rebalance.
    """

    def __init__(
        self,
        clock: Clock,
        topics: Mapping[str, Topic],
        script: str,
        record: Callable[[SimulatedRebalance], None],
    ) -> None:
        self.client_ids: dict[str, str] = {}
        self._last: SimulatedRebalance | None = None
        self._clock = clock
        self._topics = topics
        self._script = script
        self._record = record
        self._user_data: dict[str, StickyUserData] = {}

    def store_user_data(self, member_id: str, user_data: StickyUserData) -> None:
        """Store a member's last assignment, which the next rebalance uses as owned partitions."""
        self._user_data[member_id] = user_data

    def group_of(self, joined: tuple[JoinedMember, ...], policy: Policy) -> Group:
        """Build, from the joined members, the group that the leader passes to the assignor.

        For assignors that send no owned partitions, the last assignments are used.
        """
        members = tuple(self._member(member, policy) for member in joined)
        return Group(topics=tuple(self._topics.values()), members=members)

    def assign(
        self, group: Group, generation: int, policy: Policy
    ) -> Assignment | LivelockError | UpstreamError:
        """Run a policy's assignor on a group, and record the rebalance.

        Return the assignment or the failure.
        """
        result: Assignment | LivelockError | UpstreamError
        try:
            result = policy.assign(group)
        except (LivelockError, UpstreamError) as failure:
            result = failure
        assignment = result if isinstance(result, Assignment) else None
        subscribed = {topic for member in group.members for topic in member.subscription}
        partitions = sum(topic.partitions for topic in group.topics if topic.name in subscribed)
        assigned = 0 if assignment is None else sum(assignment.loads().values())
        self._last = SimulatedRebalance(
            at=self._clock.now,
            generation=generation,
            group=replace(group, id=f"{self._script}/{generation}"),
            assignment=assignment,
            client_ids={member.id: self.client_ids[member.id] for member in group.members},
            complete=assigned == partitions,
        )
        self._record(self._last)
        return result

    def mark_stable(self, generation: int) -> None:
        """Record the time at which the group becomes stable in a generation."""
        if self._last is not None and self._last.generation == generation:
            self._last.stable_at = self._clock.now

    def _member(self, joined: JoinedMember, policy: Policy) -> Member:
        metadata = joined.metadata
        if policy.protocol is RebalanceProtocol.COOPERATIVE:
            owned, generation = metadata.owned, metadata.generation
        else:
            data = metadata.user_data
            if data is None and policy.name != "sticky":
                data = self._user_data.get(joined.member_id)
            if data is None or data.partitions is None:
                owned, generation = NO_PARTITIONS, NO_GENERATION
            else:
                owned, generation = data.partitions, data.generation
        return Member(
            id=joined.member_id,
            subscription=metadata.topics,
            owned=owned,
            generation=generation,
            instance_id=joined.instance_id,
            rack=metadata.rack,
        )
