"""Settings of the coordinator, by the names and defaults of the broker's configuration."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """Broker settings; all times in milliseconds.

    Parameters
    ----------
    initial_rebalance_delay
        ``group.initial.rebalance.delay.ms``: how long an empty group waits for more
        members after the first.
    max_size
        ``group.max.size``.
    new_member_join_timeout
        After so long a new member's JoinGroup is given up; a constant of the broker.
    heartbeat_interval
        ``group.consumer.heartbeat.interval.ms``, consumer protocol only.
    session_timeout
        ``group.consumer.session.timeout.ms``, consumer protocol only.
    assignment_interval
        ``group.consumer.assignment.interval.ms``: least time between two target
        assignments, consumer protocol only.
    """

    initial_rebalance_delay: int = 3_000
    max_size: int = 2**31 - 1
    new_member_join_timeout: int = 300_000
    heartbeat_interval: int = 5_000
    session_timeout: int = 45_000
    assignment_interval: int = 1_000


DEFAULTS = CoordinatorConfig()
