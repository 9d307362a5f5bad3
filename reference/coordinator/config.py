"""Coordinator settings with the broker's defaults."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """Broker settings; all times in milliseconds.

    Parameters
    ----------
    initial_rebalance_delay
        ``group.initial.rebalance.delay.ms``: time that an empty group waits for further
        members after the first one.
    max_size
        ``group.max.size``.
    new_member_join_timeout
        Timeout of a new member's JoinGroup, a constant of the broker.
    heartbeat_interval
        ``group.consumer.heartbeat.interval.ms``, consumer protocol only.
    session_timeout
        ``group.consumer.session.timeout.ms``, consumer protocol only.
    assignment_interval
        ``group.consumer.assignment.interval.ms``: minimum time between two target
        assignments, consumer protocol only.
    """

    initial_rebalance_delay: int = 3_000
    max_size: int = 2**31 - 1
    new_member_join_timeout: int = 300_000
    heartbeat_interval: int = 5_000
    session_timeout: int = 45_000
    assignment_interval: int = 1_000


DEFAULTS = CoordinatorConfig()
