"""Members of the classic protocol in a group of the consumer protocol.

A rolling upgrade converts a classic group to a group of the consumer protocol when its first
member of the consumer protocol joins. The other members keep sending requests of the classic
protocol until they are upgraded.

Upstream: ConsumerGroup.fromClassicGroup and the ``classicGroup...ToConsumerGroup`` methods of
org.apache.kafka.coordinator.group.GroupMetadataManager, group-coordinator 4.x.
"""

from collections.abc import Callable

from kassay.reference.coordinator.classic.classic_group import ClassicGroup
from kassay.reference.coordinator.consumer.coordinator import (
    JOIN_EPOCH,
    ConsumerCoordinator,
    Heartbeat,
)
from kassay.reference.coordinator.consumer.reconciliation import ConsumerMember, MemberState
from kassay.reference.model.topic_partitions import Partitions
from kassay.reference.protocol.requests import (
    NO_ERROR,
    UNKNOWN_MEMBER,
    ErrorCode,
    JoinReply,
    JoinRequest,
    JoinResponse,
    SyncReply,
    SyncRequest,
    SyncResponse,
)


class ClassicMembers:
    """Handler of classic requests to a coordinator of the consumer protocol.

    ``new_id`` creates a member id from a client id.
    """

    def __init__(self, coordinator: ConsumerCoordinator, new_id: Callable[[str], str]) -> None:
        self._coordinator = coordinator
        self._new_id = new_id
        self._pending: set[str] = set()

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        """Handle a JoinGroup request. The broker, not a leader, computes the assignment."""
        member = self._coordinator.group.members.get(request.member_id)
        if request.member_id == UNKNOWN_MEMBER:
            new_id = self._new_id(request.client)
            self._pending.add(new_id)
            reply(JoinResponse(ErrorCode.MEMBER_ID_REQUIRED, new_id))
            return
        if member is None and request.member_id not in self._pending:
            reply(JoinResponse(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER))
            return
        self._pending.discard(request.member_id)
        protocol = request.offers[0]
        response = self._coordinator.heartbeat(
            Heartbeat(
                request.member_id,
                JOIN_EPOCH if member is None else member.epoch,
                protocol.metadata.topics,
                frozenset(protocol.metadata.owned),
                request.rebalance_timeout,
                request.instance_id,
                request.client,
                protocol.metadata.rack,
            )
        )
        reply(JoinResponse(response.code, request.member_id, response.epoch, protocol.name))

    def sync(self, request: SyncRequest, reply: SyncReply) -> None:
        """Handle a SyncGroup request. The response has the current assignment of the member."""
        code = self._validate(request.member_id, request.generation)
        if code is not NO_ERROR:
            reply(SyncResponse(code))
            return
        assigned = self._coordinator.group.members[request.member_id].assigned
        reply(SyncResponse(NO_ERROR, Partitions.of(sorted(assigned)), request.protocol))

    def heartbeat(self, member_id: str, generation: int) -> ErrorCode:
        """Handle a Heartbeat request.

        After REBALANCE_IN_PROGRESS, the member must join again: the group epoch has increased, the
        member must revoke partitions, or partitions of its target assignment are free.
        """
        code = self._validate(member_id, generation)
        if code is not NO_ERROR:
            return code
        group = self._coordinator.group
        member = group.members[member_id]
        self._coordinator.restart_session(member_id)
        if (
            member.epoch < group.epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not self._is_waiting(member))
        ):
            return ErrorCode.REBALANCE_IN_PROGRESS
        return NO_ERROR

    def leave(self, member_id: str) -> None:
        """Handle a LeaveGroup request."""
        self._coordinator.fence(member_id)

    def _validate(self, member_id: str, generation: int) -> ErrorCode:
        member = self._coordinator.group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return NO_ERROR if generation == member.epoch else ErrorCode.ILLEGAL_GENERATION

    def _is_waiting(self, member: ConsumerMember) -> bool:
        """Return whether another member still owns a partition of the member's target."""
        group = self._coordinator.group
        return any(group.is_owned(tp) for tp in group.target_of(member.id) - member.assigned)


def converted_members(group: ClassicGroup) -> list[ConsumerMember]:
    """Convert the members of a classic group. Their epoch is the generation of the group."""
    members = []
    for member in group.members.values():
        subscription = member.metadata(group.protocol)
        members.append(
            ConsumerMember(
                id=member.id,
                subscription=tuple(sorted(subscription.topics)),
                instance_id=member.instance_id,
                client=member.client,
                rack=subscription.rack,
                rebalance_timeout=member.rebalance_timeout,
                epoch=group.generation,
                previous_epoch=group.generation,
                assigned=frozenset(member.assignment),
            )
        )
    return members
