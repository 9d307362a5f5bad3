"""Group of the classic protocol: its states, members and selected assignor.

Upstream: org.apache.kafka.coordinator.group.classic.ClassicGroup, ClassicGroupMember and
ClassicGroupState, group-coordinator 4.x.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kassay.reference.java_collections import first_in_map
from kassay.reference.model.errors import InternalError
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions
from kassay.reference.protocol.group_messages import (
    CONSUMERS,
    NO_ERROR,
    ErrorCode,
    JoinedMember,
    JoinReply,
    JoinRequest,
    JoinResponse,
    SupportedProtocol,
    SyncReply,
    SyncResponse,
)


class GroupState(StrEnum):
    """State of a group under the classic protocol."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = GroupState
"""The states as constants: in Python 3.11 `GroupState.STABLE` takes ten times as long."""


VALID_PREVIOUS_STATES: Mapping[GroupState, tuple[GroupState, ...]] = {
    EMPTY: (PREPARING_REBALANCE,),
    PREPARING_REBALANCE: (EMPTY, COMPLETING_REBALANCE, STABLE),
    COMPLETING_REBALANCE: (PREPARING_REBALANCE,),
    STABLE: (COMPLETING_REBALANCE,),
    DEAD: tuple(GroupState),
}
"""Valid previous states of each state."""


@dataclass(eq=False, slots=True)
class ClassicMember:
    """Member of a classic group, with the functions that answer its pending requests."""

    id: str
    instance_id: str | None
    request: JoinRequest  # with the values of the last one
    assignment: Partitions = NO_PARTITIONS
    is_new: bool = False
    join_reply: JoinReply | None = None
    sync_reply: SyncReply | None = None

    def offer(self, protocol: str | None) -> SupportedProtocol:
        """Return the member's entry for a protocol. Raise InternalError if it has none."""
        for supported in self.request.offers:
            if supported.name == protocol:
                return supported
        raise InternalError(f"member {self.id!r} does not support protocol {protocol!r}")

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Return whether the member needs no heartbeat because it waits for a response."""
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)

    def respond_to_sync(self, response: SyncResponse) -> bool:
        """Answer the member's pending SyncGroup request. Return False if no request is pending."""
        reply, self.sync_reply = self.sync_reply, None
        if reply is None:
            return False
        reply(response)
        return True


class ClassicGroup:
    """State of one classic group, which only `ClassicCoordinator` changes."""

    def __init__(
        self,
        group_id: str,
        now: int = 0,
        on_state_change: Callable[[int, GroupState], None] | None = None,
    ) -> None:
        self.id = group_id
        self._on_state_change = on_state_change
        self.state = EMPTY
        self.previous_state = DEAD
        self.state_changed_at = now
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.has_user_data = False
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_joins: dict[str, None] = {}
        self.pending_syncs: dict[str, None] = {}
        self.new_member_added = False
        self.members_awaiting_join = 0
        self._supporters: Counter[str] = Counter()
        self._most_members = 0

    def transition_to(self, state: GroupState, now: int) -> None:
        """Change the state of the group. Raise InternalError for an invalid transition."""
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise InternalError(f"a group cannot change from state {self.state} to {state}")
        self.previous_state, self.state = self.state, state
        self.state_changed_at = now
        if self._on_state_change is not None:
            self._on_state_change(now, state)

    def add(self, member: ClassicMember, reply: JoinReply | None) -> None:
        """Add a member. The first member becomes the leader."""
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        if not self.members:
            self.protocol_type = CONSUMERS
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self._most_members = max(self._most_members, len(self.members))
        self._supporters.update(protocol.name for protocol in member.request.offers)
        self.set_join_reply(member, reply)
        self.pending_joins.pop(member.id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member, and replace the leader if necessary."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supporters.subtract(protocol.name for protocol in member.request.offers)
            if member.join_reply is not None:
                self.members_awaiting_join -= 1
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = first_in_map(self.members, largest_size=self._most_members)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def replace_static_member(self, old_id: str, new_id: str) -> ClassicMember:
        """Change the id of a static member; reject the pending requests of the old id."""
        member = self.members.pop(old_id)
        self.respond_to_join(member, JoinResponse(ErrorCode.FENCED_INSTANCE_ID, old_id))
        member.respond_to_sync(SyncResponse(ErrorCode.FENCED_INSTANCE_ID))
        member.id = new_id
        member.is_new = False
        self.members[new_id] = member
        if self.leader == old_id:
            self.leader = new_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = new_id
        return member

    def update_member(
        self, member: ClassicMember, request: JoinRequest, reply: JoinReply | None
    ) -> None:
        """Update a member with the values of its repeated JoinGroup request."""
        self._supporters.subtract(protocol.name for protocol in member.request.offers)
        self._supporters.update(protocol.name for protocol in request.offers)
        member.request = member.request._replace(
            offers=request.offers,
            session_timeout=request.session_timeout,
            rebalance_timeout=request.rebalance_timeout,
        )
        self.set_join_reply(member, reply)

    def set_join_reply(self, member: ClassicMember, reply: JoinReply | None) -> None:
        """Set or clear the reply function of a member's pending JoinGroup request."""
        if reply is not None:
            self.members_awaiting_join += 1
        if member.join_reply is not None:
            self.members_awaiting_join -= 1
        member.join_reply = reply

    def respond_to_join(self, member: ClassicMember, response: JoinResponse) -> None:
        """Answer a member's JoinGroup request if the request is pending."""
        reply = member.join_reply
        if reply is not None:
            self.set_join_reply(member, None)
            reply(response)

    def validate_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Return `ErrorCode.NONE` if the ids of a request belong to a member, or an error code."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return NO_ERROR if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    @property
    def has_all_members_joined(self) -> bool:
        """Return whether all members and all clients with a new id have sent JoinGroup."""
        return len(self.members) == self.members_awaiting_join and not self.pending_joins

    @property
    def rebalance_timeout(self) -> int:
        """Return the maximum rebalance timeout of the members in milliseconds."""
        return max((one.request.rebalance_timeout for one in self.members.values()), default=0)

    def maybe_elect_new_joined_leader(self) -> bool:
        """Replace a leader that has not joined. Return False if no member has joined."""
        if self.leader is None:
            return False
        if self.members[self.leader].join_reply is not None:
            return True
        joined = [member.id for member in self.members.values() if member.join_reply is not None]
        chosen = first_in_map(joined, largest_size=self._most_members)
        if chosen is None:
            return False
        self.leader = chosen
        return True

    def supports_protocols(self, offers: Sequence[SupportedProtocol]) -> bool:
        """Return whether a member that offers these protocols can join the group."""
        if self.state is EMPTY:
            return bool(offers)
        return len(self.members) in [self._supporters[protocol.name] for protocol in offers]

    def select_protocol(self) -> str:
        """Select the protocol with the most votes among the protocols that all members support."""
        member_count = len(self.members)
        candidates = {name for name, count in self._supporters.items() if count == member_count}
        if member_count and len(candidates) == 1:
            return candidates.pop()
        votes: Counter[str] = Counter()
        for member in self.members.values():
            choice = next((p.name for p in member.request.offers if p.name in candidates), None)
            if choice is None:
                raise InternalError(f"member {member.id!r} supports none of {sorted(candidates)}")
            votes[choice] += 1
        most = max(votes.values(), default=0)
        winners = [name for name, count in votes.items() if count == most]
        winner = first_in_map(winners, largest_size=len(votes))
        if winner is None:
            raise InternalError("cannot select a protocol for a group without members")
        return winner

    def init_next_generation(self, now: int) -> None:
        """Start the sync phase of the next generation; without members, change to state Empty."""
        self.generation += 1
        self.pending_syncs.clear()
        self.protocol = self.select_protocol() if self.members else None
        self.transition_to(COMPLETING_REBALANCE if self.members else EMPTY, now)

    def join_response(
        self, member_id: str, *, with_members: bool = True, skip_assignment: bool = False
    ) -> JoinResponse:
        """Build the response to a JoinGroup request. Only the leader receives the members."""
        members: tuple[JoinedMember, ...] = ()
        if with_members and member_id == self.leader:
            members = tuple(
                JoinedMember(member.id, member.instance_id, member.offer(self.protocol).metadata)
                for member in self.members.values()
            )
        return JoinResponse(
            NO_ERROR,
            member_id,
            self.generation,
            self.protocol,
            self.leader,
            members,
            skip_assignment,
        )
