"""Every rebalance of a run as a group document: made for the assignor, kept with its answer."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from kassay.experiments.simulation.policies import GroupProtocol, Policy
from kassay.experiments.simulation.simulation_result import Step
from kassay.reference.coordinator.clock import Clock
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import LivelockError, UpstreamError
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.reference.protocol.consumer_protocol import StickyUserData
from kassay.reference.protocol.messages import JoinedMember


class RebalanceRecorder:
    """Runs the assignor and keeps what it saw and said.

    Parameters
    ----------
    policy
        Whose assignor.
    clock
        Virtual time.
    topics
        The topics as they are, by name.
    name
        Name of the script, which begins the ids of the group documents.
    keep
        Where each step goes.
    """

    def __init__(
        self,
        policy: Policy,
        clock: Clock,
        topics: Mapping[str, Topic],
        name: str,
        keep: Callable[[Step], None],
    ) -> None:
        self.clients: dict[str, str] = {}
        self.last: Step | None = None
        self._policy = policy
        self._clock = clock
        self._topics = topics
        self._name = name
        self._keep = keep
        self._memories: dict[str, StickyUserData] = {}

    def remember(self, member_id: str, memory: StickyUserData) -> None:
        """Keep what a member was given last: its prior ownership in the next rebalance."""
        self._memories[member_id] = memory

    def of_members(self, joined: tuple[JoinedMember, ...]) -> Group:
        """Describe a rebalance as its leader sees it.

        Of assignors that send no ownership it is taken from what the members were given.
        """
        members = tuple(self._member(one) for one in joined)
        return Group(topics=tuple(self._topics.values()), members=members)

    def assign(self, group: Group, generation: int) -> Assignment | LivelockError | UpstreamError:
        """Have a group assigned; where that fails, what it fails with."""
        answer: Assignment | LivelockError | UpstreamError
        try:
            answer = self._policy.assign(group)
        except (LivelockError, UpstreamError) as failure:
            answer = failure
        assignment = answer if isinstance(answer, Assignment) else None
        wanted = {topic for member in group.members for topic in member.subscription}
        partitions = sum(topic.partitions for topic in group.topics if topic.name in wanted)
        given = 0 if assignment is None else sum(assignment.loads().values())
        self.last = Step(
            at=self._clock.now,
            generation=generation,
            group=replace(group, id=f"{self._name}/{generation}"),
            assignment=assignment,
            names={member.id: self.clients[member.id] for member in group.members},
            complete=given == partitions,
        )
        self._keep(self.last)
        return answer

    def settle(self, generation: int) -> None:
        """Note that the group is stable in a generation."""
        if self.last is not None and self.last.generation == generation:
            self.last.settled_at = self._clock.now

    def _member(self, joined: JoinedMember) -> Member:
        said = joined.metadata
        if self._policy.protocol is GroupProtocol.COOPERATIVE:
            owned, generation = said.owned, said.generation
        else:
            memory = said.user_data or self._memories.get(joined.member_id)
            if memory is None or memory.partitions is None:
                owned, generation = NO_PARTITIONS, NO_GENERATION
            else:
                owned, generation = memory.partitions, memory.generation
        return Member(
            id=joined.member_id,
            subscription=said.topics,
            owned=owned,
            generation=generation,
            instance_id=joined.instance_id,
            rack=said.rack,
        )
