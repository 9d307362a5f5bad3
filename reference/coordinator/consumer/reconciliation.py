"""Reconciliation of a member with its target assignment, one step per heartbeat (KIP-848).

Upstream: org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder,
group-coordinator 4.x.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum

from kassay.reference.model.topic_partitions import TopicPartition

PartitionSet = frozenset[TopicPartition]
NONE: PartitionSet = frozenset()


class MemberState(IntEnum):
    """Reconciliation state of a member. The numbers are those in Kafka's records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


_STABLE, _UNREVOKED, _UNRELEASED = MemberState


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """Member of a group of the consumer protocol."""

    id: str
    subscription: tuple[str, ...] = ()  # sorted
    instance_id: str | None = None
    client: str = "consumer"
    rack: str | None = None
    rebalance_timeout: int = 300_000  # maximum time to revoke partitions, in ms
    epoch: int = 0
    previous_epoch: int = 0  # the member is still in it if a response was lost
    state: MemberState = _STABLE
    assigned: PartitionSet = NONE  # partitions that it may consume
    revoking: PartitionSet = NONE  # partitions that it must revoke

    @property
    def owned_or_revoking(self) -> PartitionSet:
        """Return the partitions that the member owns or still has to revoke."""
        return self.assigned | self.revoking if self.revoking else self.assigned

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has reached the target assignment of an epoch."""
        return self.state is _STABLE and self.epoch == epoch


def reconcile(
    member: ConsumerMember,
    *,
    target_epoch: int,
    target: PartitionSet,
    is_owned: Callable[[TopicPartition], bool],
    owned: PartitionSet | None,
    subscription_changed: bool = False,
) -> ConsumerMember:
    """Move a member one step towards its target assignment, if a step is possible.

    ``is_owned`` returns whether a member owns a partition or still has to revoke it.
    ``owned`` are the partitions in the heartbeat; None if it does not contain them.

    Examples
    --------
    >>> t0, t1 = TopicPartition("t", 0), TopicPartition("t", 1)
    >>> member = ConsumerMember(id="a", subscription=("t",), epoch=1, assigned=frozenset({t0, t1}))
    >>> target = {"target_epoch": 2, "target": frozenset({t0}), "is_owned": {t0, t1}.__contains__}
    >>> revoking = reconcile(member, owned=frozenset({t0, t1}), **target)
    >>> revoking.state.name, revoking.epoch, sorted(revoking.revoking)
    ('UNREVOKED_PARTITIONS', 1, [TopicPartition(topic='t', partition=1)])
    >>> reconciled = reconcile(revoking, owned=frozenset({t0}), **target)
    >>> reconciled.state.name, reconciled.epoch
    ('STABLE', 2)
    """
    if member.state is _STABLE and member.epoch == target_epoch:
        return _drop_unsubscribed(member, owned) if subscription_changed else member
    if member.state is _UNREVOKED and _owns_any(owned, member.revoking):
        return _drop_unsubscribed(member, owned) if subscription_changed else member
    # An unchanged target is the same object: no partition is revoked, assigned or filtered.
    if target is member.assigned and not (member.revoking or subscription_changed):
        return replace(member, state=_STABLE, previous_epoch=member.epoch, epoch=target_epoch)
    subscribed = target
    if not {tp.topic for tp in target}.issubset(member.subscription):
        subscribed = frozenset(tp for tp in target if tp.topic in member.subscription)
    kept = member.assigned & subscribed
    revoking = member.assigned - kept
    if revoking and _owns_any(owned, revoking):
        return _revoke(member, kept, revoking)
    missing = subscribed - kept
    unreleased = frozenset(tp for tp in missing if is_owned(tp) and tp not in member.revoking)
    return replace(
        member,
        state=_UNRELEASED if unreleased else _STABLE,
        previous_epoch=member.epoch,
        epoch=target_epoch,
        assigned=subscribed - unreleased if unreleased else subscribed,
        revoking=NONE,
    )


def _revoke(member: ConsumerMember, kept: PartitionSet, revoking: PartitionSet) -> ConsumerMember:
    epoch = member.epoch
    return replace(member, state=_UNREVOKED, previous_epoch=epoch, assigned=kept, revoking=revoking)


def _owns_any(owned: PartitionSet | None, revoking: PartitionSet) -> bool:
    """Return whether the member may still own one of the partitions that it must revoke.

    The result is True if the heartbeat does not contain the owned partitions.
    """
    return owned is None or not owned.isdisjoint(revoking)


def _drop_unsubscribed(member: ConsumerMember, owned: PartitionSet | None) -> ConsumerMember:
    """Revoke the partitions of topics that the member no longer subscribes to."""
    kept = frozenset(tp for tp in member.assigned if tp.topic in member.subscription)
    if kept == member.assigned:
        return member
    revoking = member.revoking | (member.assigned - kept)
    if _owns_any(owned, revoking):
        return _revoke(member, kept, revoking)
    return replace(member, previous_epoch=member.epoch, assigned=kept)
