"""Handling of JoinGroup requests, one function per case.

Upstream: the ``classicGroupJoin...`` methods of
org.apache.kafka.coordinator.group.GroupMetadataManager, group-coordinator 4.x.
"""

from kassay.reference.coordinator.classic.classic_group import ClassicMember
from kassay.reference.coordinator.classic.rebalance import ClassicRebalance
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
    rebalance: ClassicRebalance, request: JoinRequest, reply: JoinReply, *, new_id: str | None
) -> None:
    """Handle a JoinGroup; the response goes to ``reply``, now or when the join phase ends.

    ``new_id`` is the id for a member without one, otherwise None.
    """
    group = rebalance.group
    if not _has_room(rebalance, request.member_id):
        group.remove(request.member_id)
        reply(JoinResponse(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER))
    elif not group.supports_protocols(request.protocol_type, request.offers):
        reply(JoinResponse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
    elif new_id is None:
        _join_known(rebalance, request, reply)
    elif request.instance_id is not None:
        _join_static(rebalance, request, reply, new_id)
    elif request.asks_for_id:
        group.pending_joins[new_id] = None
        rebalance.start_pending_join_timer(new_id, request.session_timeout)
        reply(JoinResponse(ErrorCode.MEMBER_ID_REQUIRED, new_id))
    else:
        _add(rebalance, request, reply, new_id)


def _has_room(rebalance: ClassicRebalance, member_id: str) -> bool:
    group, max_size = rebalance.group, rebalance.config.max_size
    member = group.members.get(member_id)
    if group.state is PREPARING_REBALANCE:
        return (
            member is not None and member.join_reply is not None
        ) or group.members_awaiting_join < max_size
    if group.state in (COMPLETING_REBALANCE, STABLE):
        return member is not None or len(group.members) < max_size
    return True


def _add(
    rebalance: ClassicRebalance, request: JoinRequest, reply: JoinReply, member_id: str
) -> None:
    group = rebalance.group
    member = ClassicMember(member_id, request)
    member.is_new = True
    if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
        group.new_member_added = True
    group.add(member, reply)
    rebalance.restart_session(member, rebalance.config.new_member_join_timeout)
    rebalance.prepare_rebalance_or_complete_join()


def _join_known(rebalance: ClassicRebalance, request: JoinRequest, reply: JoinReply) -> None:
    group = rebalance.group
    if request.member_id in group.pending_joins:
        _add(rebalance, request, reply, request.member_id)
        return
    code = group.validate_member(request.member_id, request.instance_id)
    if code is not NO_ERROR:
        reply(JoinResponse(code, request.member_id))
        return
    member = group.members[request.member_id]
    if group.state is EMPTY:
        reply(JoinResponse(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
    elif _requires_rebalance(rebalance, member, request):
        group.update_member(member, request, reply)
        rebalance.prepare_rebalance_or_complete_join()
    else:
        # The member may have lost the response to the same JoinGroup.
        reply(_current_generation(rebalance, member, leads=group.state is not STABLE))


def _requires_rebalance(
    rebalance: ClassicRebalance, member: ClassicMember, request: JoinRequest
) -> bool:
    """Return whether a JoinGroup is part of a rebalance or causes one."""
    group = rebalance.group
    if group.state is PREPARING_REBALANCE or member.offers != request.offers:
        return True
    # The leader joins a stable group again when the topics' metadata change.
    return group.state is STABLE and group.leader == member.id


def _current_generation(
    rebalance: ClassicRebalance, member: ClassicMember, *, leads: bool, skip: bool = False
) -> JoinResponse:
    group = rebalance.group
    return JoinResponse(
        NO_ERROR,
        member.id,
        group.generation,
        group.protocol,
        group.leader,
        group.joined_members() if leads and group.leader == member.id else (),
        skip,
    )


def _join_static(
    rebalance: ClassicRebalance, request: JoinRequest, reply: JoinReply, new_id: str
) -> None:
    """Add a static member, or replace the member with its instance id."""
    group = rebalance.group
    old_id = group.static_members.get(request.instance_id or "")
    if old_id is None:
        _add(rebalance, request, reply, new_id)
        return
    rebalance.cancel_session(old_id)
    member = group.replace_static_member(old_id, new_id)
    rebalance.restart_session(member)
    group.update_member(member, request, reply)
    if group.state is COMPLETING_REBALANCE:
        # The leader may have received the old id and must receive the new one.
        rebalance.prepare_rebalance()
    elif group.state is not STABLE:
        rebalance.maybe_complete_join()
    elif group.select_protocol() != group.protocol:
        rebalance.prepare_rebalance_or_complete_join()
    else:
        rebalance.write_group()
        group.respond_to_join(
            member,
            _current_generation(rebalance, member, leads=True, skip=group.leader == member.id),
        )
