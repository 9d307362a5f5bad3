"""KIP-848: how a member gets from what it has to what it shall have, one step a heartbeat.

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
    """Where a member stands in its reconciliation, by the numbers that records hold."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


_STABLE, _UNREVOKED, _UNRELEASED = MemberState


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """A member under the consumer protocol.

    Parameters
    ----------
    id, instance_id, client, rack
        Who it is.
    subscription
        Topics it consumes, sorted.
    rebalance_timeout
        How long it may take to give partitions up, in milliseconds.
    epoch, previous_epoch
        Epoch that it is in, and the one before, in which it is if an answer was lost.
    state
        Where it stands.
    assigned
        Partitions that it may consume.
    revoking
        Partitions that it has been told to give up.
    """

    id: str
    subscription: tuple[str, ...] = ()
    instance_id: str | None = None
    client: str = "consumer"
    rack: str | None = None
    rebalance_timeout: int = 300_000
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = _STABLE
    assigned: PartitionSet = NONE
    revoking: PartitionSet = NONE

    @property
    def holds(self) -> PartitionSet:
        """Partitions that nobody else may be given yet."""
        return self.assigned | self.revoking if self.revoking else self.assigned

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has all that the target of an epoch gives it."""
        return self.state is _STABLE and self.epoch == epoch


def reconcile(
    member: ConsumerMember,
    *,
    target_epoch: int,
    target: PartitionSet,
    is_taken: Callable[[TopicPartition], bool],
    owned: PartitionSet | None,
    subscription_changed: bool = False,
) -> ConsumerMember:
    """Take a member one step towards its target.

    Parameters
    ----------
    member
        The member as it is.
    target_epoch
        Epoch of the target assignment.
    target
        What it shall have.
    is_taken
        Whether some member holds a partition, or has not given it up yet.
    owned
        What it says that it owns; None if it says nothing.
    subscription_changed
        Whether it has just changed its subscription.

    Returns
    -------
    ConsumerMember
        The member after the step; as it was if it cannot take one.

    Examples
    --------
    >>> t0, t1 = TopicPartition("t", 0), TopicPartition("t", 1)
    >>> had = ConsumerMember(id="a", subscription=("t",), epoch=1, assigned=frozenset({t0, t1}))
    >>> shall = {"target_epoch": 2, "target": frozenset({t0}), "is_taken": {t0, t1}.__contains__}
    >>> told = reconcile(had, owned=frozenset({t0, t1}), **shall)
    >>> told.state.name, told.epoch, sorted(told.revoking)
    ('UNREVOKED_PARTITIONS', 1, [TopicPartition(topic='t', partition=1)])
    >>> done = reconcile(told, owned=frozenset({t0}), **shall)
    >>> done.state.name, done.epoch
    ('STABLE', 2)
    """
    if member.state is _STABLE and member.epoch == target_epoch:
        return _drop_unsubscribed(member, owned) if subscription_changed else member
    if member.state is _UNREVOKED and _owns_any(owned, member.revoking):
        return _drop_unsubscribed(member, owned) if subscription_changed else member
    # A target that stays is the same set, of which nothing is left to give, take or filter.
    if target is member.assigned and not (member.revoking or subscription_changed):
        return replace(member, state=_STABLE, previous_epoch=member.epoch, epoch=target_epoch)
    wanted = target
    if not {tp.topic for tp in target}.issubset(member.subscription):
        wanted = frozenset(tp for tp in target if tp.topic in member.subscription)
    kept = member.assigned & wanted
    revoking = member.assigned - kept
    if revoking and _owns_any(owned, revoking):
        return replace(
            member,
            state=_UNREVOKED,
            previous_epoch=member.epoch,
            assigned=kept,
            revoking=revoking,
        )
    missing = wanted - kept
    unreleased = frozenset(tp for tp in missing if is_taken(tp) and tp not in member.revoking)
    return replace(
        member,
        state=_UNRELEASED if unreleased else _STABLE,
        previous_epoch=member.epoch,
        epoch=target_epoch,
        assigned=wanted - unreleased if unreleased else wanted,
        revoking=NONE,
    )


def _owns_any(owned: PartitionSet | None, revoking: PartitionSet) -> bool:
    """Whether a member still has some of what it must give up; silence counts as yes."""
    return owned is None or not owned.isdisjoint(revoking)


def _drop_unsubscribed(member: ConsumerMember, owned: PartitionSet | None) -> ConsumerMember:
    """Take the partitions of topics that a member no longer subscribes to."""
    kept = frozenset(tp for tp in member.assigned if tp.topic in member.subscription)
    if kept == member.assigned:
        return member
    revoking = member.revoking | (member.assigned - kept)
    if _owns_any(owned, revoking):
        return replace(
            member,
            state=_UNREVOKED,
            previous_epoch=member.epoch,
            assigned=kept,
            revoking=revoking,
        )
    return replace(member, previous_epoch=member.epoch, assigned=kept)
