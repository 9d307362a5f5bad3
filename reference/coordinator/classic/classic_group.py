"""A classic group: its members, who leads, which protocol wins, which generation it is.

Upstream: org.apache.kafka.coordinator.group.classic.ClassicGroup and ClassicGroupMember,
group-coordinator 4.x.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from kassay.reference.coordinator.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    GroupState,
    check_transition,
)
from kassay.reference.coordinator.clock import Timer
from kassay.reference.java.hash_order import first_in_map
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions
from kassay.reference.protocol.consumer_protocol import ConsumerSubscription
from kassay.reference.protocol.messages import (
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


class ClassicMember:
    """A member as the coordinator knows it; times in milliseconds.

    ``join_reply`` and ``sync_reply`` are set while the member waits for an answer, and
    ``session`` once somebody watches for its silence.
    """

    __slots__ = (
        "assignment",
        "client",
        "id",
        "instance_id",
        "is_new",
        "join_reply",
        "offers",
        "rebalance_timeout",
        "session",
        "session_timeout",
        "sync_reply",
    )

    def __init__(self, member_id: str, request: JoinRequest) -> None:
        self.id = member_id
        self.instance_id = request.instance_id
        self.client = request.client
        self.offers = request.offers
        self.session_timeout = request.session_timeout
        self.rebalance_timeout = request.rebalance_timeout
        self.session: Timer | None = None
        self.assignment: Partitions = NO_PARTITIONS
        self.is_new = False
        self.join_reply: JoinReply | None = None
        self.sync_reply: SyncReply | None = None

    def metadata(self, protocol: str | None) -> ConsumerSubscription:
        """Return what it offered with a protocol.

        Raises
        ------
        LookupError
            If it does not support the protocol.
        """
        for offer in self.offers:
            if offer.name == protocol:
                return offer.metadata
        raise LookupError(f"member {self.id!r} does not support protocol {protocol!r}")

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether it need not send heartbeats now, since it waits for an answer."""
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)

    def answer_sync(self, response: SyncResponse) -> bool:
        """Answer its SyncGroup, if it waits for one."""
        reply, self.sync_reply = self.sync_reply, None
        if reply is None:
            return False
        reply(response)
        return True


class ClassicGroup:
    """State of one group; it changes only through `ClassicCoordinator`.

    Parameters
    ----------
    group_id
        Name of the group.
    now
        The time, in milliseconds.
    watch
        Told of every change of state, with the time.
    """

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
        self.since = now
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_joins: dict[str, None] = {}
        self.pending_syncs: dict[str, None] = {}
        self.new_member_added = False
        self.awaiting_join = 0
        self._supporters: Counter[str] = Counter()
        self._most_members = 0

    def move_to(self, state: GroupState, now: int) -> None:
        """Change the state; IllegalTransitionError if Kafka's table has no such change."""
        check_transition(self.state, state)
        self.previous_state, self.state, self.since = self.state, state, now
        if self._on_state_change is not None:
            self._on_state_change(now, state)

    # ---- Members ----------------------------------------------------------------

    def add(self, member: ClassicMember, reply: JoinReply | None) -> None:
        """Take a member in; the first leads."""
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        if not self.members:
            self.protocol_type = CONSUMERS
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self._most_members = max(self._most_members, len(self.members))
        self._supporters.update(offer.name for offer in member.offers)
        self.await_join(member, reply)
        self.pending_joins.pop(member.id, None)

    def remove(self, member_id: str) -> None:
        """Let a member go, pending ones too; a new leader follows a leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supporters.subtract(offer.name for offer in member.offers)
            if member.join_reply is not None:
                self.awaiting_join -= 1
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = first_in_map(self.members, largest_size=self._most_members)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def replace_static(self, old_id: str, new_id: str) -> ClassicMember:
        """Give a static member its new id; whoever waits under the old one is fenced."""
        member = self.members.pop(old_id)
        self.answer_join(member, JoinResponse(ErrorCode.FENCED_INSTANCE_ID, old_id))
        member.answer_sync(SyncResponse(ErrorCode.FENCED_INSTANCE_ID))
        member.id = new_id
        member.is_new = False
        self.members[new_id] = member
        if self.leader == old_id:
            self.leader = new_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = new_id
        return member

    def update(self, member: ClassicMember, request: JoinRequest, reply: JoinReply | None) -> None:
        """Take over what a member says on joining again."""
        before, member.offers = member.offers, request.offers
        for offer in before:
            self._supporters[offer.name] -= 1
        for offer in request.offers:
            self._supporters[offer.name] += 1
        member.rebalance_timeout = request.rebalance_timeout
        member.session_timeout = request.session_timeout
        self.await_join(member, reply)

    def await_join(self, member: ClassicMember, reply: JoinReply | None) -> None:
        """Note who waits for an answer to its JoinGroup."""
        if reply is not None:
            self.awaiting_join += 1
        if member.join_reply is not None:
            self.awaiting_join -= 1
        member.join_reply = reply

    def answer_join(self, member: ClassicMember, response: JoinResponse) -> None:
        """Answer a member's JoinGroup, if it waits for one."""
        reply = member.join_reply
        if reply is not None:
            self.await_join(member, None)
            reply(response)

    def validate(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Say whether a request comes from a member: NONE, or what it is told instead."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return NO_ERROR if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # ---- The join phase -----------------------------------------------------------

    @property
    def all_joined(self) -> bool:
        """Whether every member waits, and no id is given out that has not joined."""
        return len(self.members) == self.awaiting_join and not self.pending_joins

    @property
    def rebalance_timeout(self) -> int:
        """The longest that any member asked for."""
        return max((member.rebalance_timeout for member in self.members.values()), default=0)

    def elect_among_joined(self) -> bool:
        """Make sure that the leader has joined; False if nobody has."""
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

    def supports(self, protocol_type: str, offers: Sequence[SupportedProtocol]) -> bool:
        """Whether somebody who offers this can be in the group."""
        if self.state is EMPTY:
            return bool(protocol_type) and bool(offers)
        if self.protocol_type != protocol_type:
            return False
        everybody, supporters = len(self.members), self._supporters
        return everybody in [supporters[offer.name] for offer in offers]

    def select_protocol(self) -> str:
        """Count the votes: each member's first protocol among those that all support.

        Raises
        ------
        LookupError
            If there are no members or they have no protocol in common.
        """
        everybody = len(self.members)
        candidates = {name for name, count in self._supporters.items() if count == everybody}
        if everybody and len(candidates) == 1:
            return candidates.pop()  # Nobody could vote for another.
        votes: Counter[str] = Counter()
        for member in self.members.values():
            choice = next((o.name for o in member.offers if o.name in candidates), None)
            if choice is None:
                raise LookupError(f"member {member.id!r} supports none of {sorted(candidates)}")
            votes[choice] += 1
        most = max(votes.values(), default=0)
        winner = first_in_map(
            [name for name, count in votes.items() if count == most], largest_size=len(votes)
        )
        if winner is None:
            raise LookupError("an empty group has no protocol")
        return winner

    def next_generation(self, now: int) -> None:
        """End the join phase: one generation on, and the sync phase or nobody left."""
        self.generation += 1
        self.pending_syncs.clear()
        if self.members:
            self.protocol = self.select_protocol()
            self.move_to(COMPLETING_REBALANCE, now)
        else:
            self.protocol = None
            self.move_to(EMPTY, now)

    def joined(self) -> tuple[JoinedMember, ...]:
        """List the members, as the leader is told of them."""
        return tuple(
            JoinedMember(member.id, member.instance_id, member.metadata(self.protocol))
            for member in self.members.values()
        )
