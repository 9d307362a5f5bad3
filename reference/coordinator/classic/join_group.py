"""What the coordinator does with a JoinGroup: the cases, one function each.

Upstream: the ``classicGroupJoin...`` methods of
org.apache.kafka.coordinator.group.GroupMetadataManager, group-coordinator 4.x.
"""

from kassay.reference.coordinator.classic.classic_group import ClassicMember
from kassay.reference.coordinator.classic.rebalance import RebalanceProcess
from kassay.reference.coordinator.classic.states import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from kassay.reference.protocol.messages import (
    NO_ERROR,
    UNKNOWN_MEMBER,
    ErrorCode,
    JoinReply,
    JoinRequest,
    JoinResponse,
)


def join(
    rebalancing: RebalanceProcess, request: JoinRequest, reply: JoinReply, *, new_id: str | None
) -> None:
    """Take a JoinGroup; the answer comes through ``reply``, now or when the join phase ends.

    Parameters
    ----------
    rebalancing
        The group, and the means to rebalance it.
    request
        What the member says.
    reply
        Where the answer goes.
    new_id
        Id for a member that has none; None if it has one.
    """
    group = rebalancing.group
    if not _has_room(rebalancing, request.member_id):
        group.remove(request.member_id)
        reply(JoinResponse(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER))
    elif not group.supports(request.protocol_type, request.offers):
        reply(JoinResponse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
    elif new_id is None:
        _join_known(rebalancing, request, reply)
    elif request.instance_id is not None:
        _join_static(rebalancing, request, reply, new_id)
    elif request.asks_for_id:
        group.pending_joins[new_id] = None
        rebalancing.watch_pending(new_id, request.session_timeout)
        reply(JoinResponse(ErrorCode.MEMBER_ID_REQUIRED, new_id))
    else:
        _add(rebalancing, request, reply, new_id)


def _has_room(rebalancing: RebalanceProcess, member_id: str) -> bool:
    group, most = rebalancing.group, rebalancing.config.max_size
    member = group.members.get(member_id)
    if group.state is PREPARING_REBALANCE:
        return (member is not None and member.join_reply is not None) or group.awaiting_join < most
    if group.state in (COMPLETING_REBALANCE, STABLE):
        return member is not None or len(group.members) < most
    return True


def _add(
    rebalancing: RebalanceProcess, request: JoinRequest, reply: JoinReply, member_id: str
) -> None:
    group = rebalancing.group
    member = ClassicMember(member_id, request)
    member.is_new = True
    if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
        group.new_member_added = True
    group.add(member, reply)
    rebalancing.keep_alive(member, rebalancing.config.new_member_join_timeout)
    rebalancing.begin_or_advance()


def _join_known(rebalancing: RebalanceProcess, request: JoinRequest, reply: JoinReply) -> None:
    group = rebalancing.group
    if request.member_id in group.pending_joins:
        _add(rebalancing, request, reply, request.member_id)
        return
    code = group.validate(request.member_id, request.instance_id)
    if code is not NO_ERROR:
        reply(JoinResponse(code, request.member_id))
        return
    member = group.members[request.member_id]
    if group.state is EMPTY:
        reply(JoinResponse(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
    elif _starts_over(rebalancing, member, request):
        group.update(member, request, reply)
        rebalancing.begin_or_advance()
    else:
        # It may have lost the answer to its JoinGroup; there is nothing new in this one.
        reply(_current(rebalancing, member, leads=group.state is not STABLE))


def _starts_over(
    rebalancing: RebalanceProcess, member: ClassicMember, request: JoinRequest
) -> bool:
    """Whether a member's new JoinGroup is part of a rebalance or the reason for one."""
    group = rebalancing.group
    if group.state is PREPARING_REBALANCE or member.offers != request.offers:
        return True
    # The leader joins a stable group again when it sees something in the topics' metadata.
    return group.state is STABLE and group.leader == member.id


def _current(
    rebalancing: RebalanceProcess, member: ClassicMember, *, leads: bool, skip: bool = False
) -> JoinResponse:
    group = rebalancing.group
    return JoinResponse(
        NO_ERROR,
        member.id,
        group.generation,
        group.protocol,
        group.leader,
        group.joined() if leads and group.leader == member.id else (),
        skip,
    )


def _join_static(
    rebalancing: RebalanceProcess, request: JoinRequest, reply: JoinReply, new_id: str
) -> None:
    """Let a static member in: in the place of its former self, if that is still there."""
    group = rebalancing.group
    old_id = group.static_members.get(request.instance_id or "")
    if old_id is None:
        _add(rebalancing, request, reply, new_id)
        return
    rebalancing.forget_session(old_id)
    member = group.replace_static(old_id, new_id)
    rebalancing.keep_alive(member)
    group.update(member, request, reply)
    if group.state is COMPLETING_REBALANCE:
        # The leader may have been told of the old id; it has to be told again.
        rebalancing.begin()
    elif group.state is not STABLE:
        rebalancing.advance()
    elif group.select_protocol() != group.protocol:
        rebalancing.begin_or_advance()
    else:
        rebalancing.write()
        group.answer_join(
            member, _current(rebalancing, member, leads=True, skip=group.leader == member.id)
        )
