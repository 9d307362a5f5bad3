"""Simulated broker that runs the group coordinator and can crash and restart."""

from collections.abc import Callable, Iterable, Sequence

from kassay.reference.coordinator.classic_coordinator import ClassicCoordinator
from kassay.reference.coordinator.consumer_coordinator import (
    ClassicMembers,
    ConsumerCoordinator,
    Heartbeat,
    HeartbeatResponse,
)
from kassay.reference.coordinator.consumer_group import ConsumerMember
from kassay.reference.coordinator.runtime import Log
from kassay.reference.model.group import Topic
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.reference.protocol.group_messages import (
    CONSUMERS,
    ErrorCode,
    GroupMetadata,
    JoinReply,
    JoinRequest,
    JoinResponse,
    MemberIdentity,
    MemberMetadata,
    Offsets,
    SyncReply,
    SyncRequest,
    SyncResponse,
)

Coordinator = ClassicCoordinator | ConsumerCoordinator
Conversion = Callable[[ClassicCoordinator, Log], tuple[ConsumerCoordinator, ClassicMembers]]
"""Function that converts a classic group to a group of the consumer protocol."""


class Broker:
    """Simulated broker that coordinates one group.

    ``load`` creates the coordinator from the log, at the first start and after a crash.
    ``convert`` converts a classic group when its first member of the consumer protocol joins.
    """

    def __init__(self, load: Callable[[Log], Coordinator], convert: Conversion) -> None:
        self.log = Log()
        self._load = load
        self._convert = convert
        self._classic_members: ClassicMembers | None = None
        self.classic: ClassicCoordinator | None = None
        self.consumer: ConsumerCoordinator | None = None
        self.is_up = False
        self.start()

    def start(self) -> None:
        """Start the broker: load the group from the log, and coordinate the group."""
        self.is_up = True
        coordinator = self._load(self.log)
        if isinstance(coordinator, ClassicCoordinator):
            self.classic = coordinator
        else:
            self.consumer = coordinator

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
        """Replace the topics that the coordinator knows by the current topics."""
        if self.consumer is not None:
            self.consumer.update_topics(topics)

    def adopt(
        self,
        classic: Sequence[MemberMetadata],
        modern: Sequence[ConsumerMember],
        *,
        generation: int,
        protocol: str,
    ) -> None:
        """Take over the members of a stable group, all of the classic or the consumer protocol.

        ``protocol`` is the assignor that a classic group has selected. Its first member leads.
        """
        if self.classic is not None and classic:
            leader, group_id = classic[0].member_id, self.classic.group.id
            kind, members = CONSUMERS, tuple(classic)
            self.classic.adopt(
                GroupMetadata(group_id, kind, generation, protocol, leader, 0, members)
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

    @property
    def member_ids(self) -> tuple[str, ...]:
        """Return the ids of the members that the coordinator knows."""
        return () if self._coordinator is None else tuple(self._coordinator.group.members)

    def committed(self, partition: TopicPartition) -> int:
        """Return the committed offset of a partition, or 0 if no offset is committed."""
        return 0 if self._coordinator is None else self._coordinator.offsets.get(partition, 0)

    # ---- Requests -----------------------------------------------------------------

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        """Handle a JoinGroup request."""
        coordinator = self._classic_members or self.classic
        if coordinator is None:
            reply(JoinResponse(ErrorCode.NOT_COORDINATOR, request.member_id))
        else:
            coordinator.join(request, reply)

    def sync(self, request: SyncRequest, reply: SyncReply) -> None:
        """Handle a SyncGroup request."""
        coordinator = self._classic_members or self.classic
        if coordinator is None:
            reply(SyncResponse(ErrorCode.NOT_COORDINATOR))
        else:
            coordinator.sync(request, reply)

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        """Handle a Heartbeat request of the classic protocol."""
        if self._classic_members is not None:
            return self._classic_members.heartbeat(member_id, generation)
        if self.classic is None:
            return ErrorCode.NOT_COORDINATOR
        return self.classic.heartbeat(member_id, generation, instance_id)

    def leave(self, member_id: str, instance_id: str | None) -> None:
        """Handle a LeaveGroup request."""
        if self._classic_members is not None:
            self._classic_members.leave(member_id)
        elif self.classic is not None:
            self.classic.leave(MemberIdentity(member_id, instance_id))

    def consumer_heartbeat(self, heartbeat: Heartbeat) -> HeartbeatResponse:
        """Handle a ConsumerGroupHeartbeat request. Convert the group if it is a classic group."""
        if self.classic is not None:
            old, self.classic = self.classic, None
            self.consumer, self._classic_members = self._convert(old, self.log)
            old.unload()
        if self.consumer is None:
            return HeartbeatResponse(ErrorCode.NOT_COORDINATOR)
        return self.consumer.heartbeat(heartbeat)

    def commit(self, member_id: str, generation: int, offsets: Offsets) -> ErrorCode:
        """Handle an OffsetCommit request of a member in a generation or epoch."""
        if self._coordinator is None:
            return ErrorCode.NOT_COORDINATOR
        return self._coordinator.commit(member_id, generation, offsets)
