"""Settings of the group coordinator, with the broker's default values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """Settings of the group coordinator. All times are in milliseconds."""

    initial_rebalance_delay: int = 3_000  # group.initial.rebalance.delay.ms
    max_size: int = 2**31 - 1  # group.max.size
    new_member_join_timeout: int = 300_000  # a constant of the broker
    # Consumer protocol only:
    heartbeat_interval: int = 5_000  # group.consumer.heartbeat.interval.ms
    session_timeout: int = 45_000  # group.consumer.session.timeout.ms
    assignment_interval: int = 1_000  # group.consumer.assignment.interval.ms


DEFAULTS = CoordinatorConfig()
