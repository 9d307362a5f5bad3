"""Handling of JoinGroup requests, one function per case.

Upstream: the ``classicGroupJoin...`` methods of
org.apache.kafka.coordinator.group.GroupMetadataManager, group-coordinator 4.x.
"""

from kassay.reference.coordinator.classic import states
from kassay.reference.coordinator.classic.classic_group import ClassicMember
from kassay.reference.coordinator.classic.rebalance import ClassicRebalance
from kassay.reference.protocol import requests
from kassay.reference.protocol.requests import ErrorCode, JoinReply, JoinRequest, JoinResponse


def join(
    rebalance: ClassicRebalance, request: JoinRequest, reply: JoinReply, *, new_id: str | None
) -> None:
    """Handle a JoinGroup request. ``reply`` receives the response at once or after the join phase.

    ``new_id`` is the id for a member without one, otherwise None.
    """
    group = rebalance.group
    if not _has_room(rebalance, request.member_id):
        group.remove(request.member_id)
        reply(JoinResponse(ErrorCode.GROUP_MAX_SIZE_REACHED, requests.UNKNOWN_MEMBER))
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
    if group.state is states.PREPARING_REBALANCE:
        is_waiting = member is not None and member.join_reply is not None
        return is_waiting or group.members_awaiting_join < max_size
    if group.state in (states.COMPLETING_REBALANCE, states.STABLE):
        return member is not None or len(group.members) < max_size
    return True


def _add(
    rebalance: ClassicRebalance, request: JoinRequest, reply: JoinReply, member_id: str
) -> None:
    group = rebalance.group
    member = ClassicMember(member_id, request)
    member.is_new = True
    if group.state is states.PREPARING_REBALANCE and group.previous_state is states.EMPTY:
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
    if code is not requests.NO_ERROR:
        reply(JoinResponse(code, request.member_id))
        return
    member = group.members[request.member_id]
    if group.state is states.EMPTY:
        reply(JoinResponse(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
    # The leader joins a stable group again when the topics' metadata change.
    elif (
        group.state is states.PREPARING_REBALANCE
        or member.offers != request.offers
        or (group.state is states.STABLE and group.leader == member.id)
    ):
        group.update_member(member, request, reply)
        rebalance.prepare_rebalance_or_complete_join()
    else:
        # The member may have lost the response to the same JoinGroup.
        reply(group.join_response(member.id, with_members=group.state is not states.STABLE))


def _join_static(
    rebalance: ClassicRebalance, request: JoinRequest, reply: JoinReply, new_id: str
) -> None:
    """Add a static member, or replace an earlier member with the same instance id."""
    group = rebalance.group
    old_id = group.static_members.get(request.instance_id or "")
    if old_id is None:
        _add(rebalance, request, reply, new_id)
        return
    rebalance.cancel_session(old_id)
    member = group.replace_static_member(old_id, new_id)
    rebalance.restart_session(member)
    group.update_member(member, request, reply)
    if group.state is states.COMPLETING_REBALANCE:
        # The leader may have received the old id and must receive the new one.
        rebalance.prepare_rebalance()
    elif group.state is not states.STABLE:
        rebalance.maybe_complete_join()
    elif group.select_protocol() != group.protocol:
        rebalance.prepare_rebalance_or_complete_join()
    else:
        rebalance.write_group()
        skip = group.leader == member.id
        group.respond_to_join(member, group.join_response(member.id, skip_assignment=skip))
