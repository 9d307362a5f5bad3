"""Simulated consumer that uses the consumer protocol (KIP-848).

Upstream: org.apache.kafka.clients.consumer.internals.AbstractMembershipManager and
ConsumerHeartbeatRequestManager, kafka-clients 4.x.
"""

from functools import partial

from kassay.experiments.simulation.consumer import RETRIABLE, Consumer
from kassay.experiments.simulation.environment import Environment
from kassay.experiments.simulation.script import MemberPlan
from kassay.reference.coordinator.consumer_coordinator import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Heartbeat,
    HeartbeatResponse,
)
from kassay.reference.coordinator.consumer_group import ConsumerMember
from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.reference.protocol.group_messages import NO_ERROR, ErrorCode

_RESTART_DELAY = 1_000
"""Delay in ms before a process that stopped with UNRELEASED_INSTANCE_ID restarts."""


class ConsumerProtocolClient(Consumer):
    """Simulated consumer of the consumer protocol, which applies assignments immediately."""

    def __init__(self, environment: Environment, plan: MemberPlan) -> None:
        super().__init__(environment, plan)
        self._retry_timer = self._timer(self._send_full)

    def _reset(self) -> None:
        self.generation = JOIN_EPOCH
        self._pending: frozenset[TopicPartition] | None = None
        self._has_left = False

    def _continue_membership(self, generation: int) -> None:
        self.generation = generation
        interval = self.environment.broker_config.heartbeat_interval
        self._heartbeat_timer.start(self.environment.random_delay(interval))

    def member(self) -> ConsumerMember:
        """Return the reconciled member that the coordinator stores."""
        return ConsumerMember(
            id=self.member_id,
            subscription=self.topics,
            instance_id=self.instance_id,
            client=self.name,
            rack=self.plan.rack,
            rebalance_timeout=self._settings.max_poll,
            epoch=self.generation,
            previous_epoch=self.generation,
            assigned=frozenset(self.owned),
        )

    def _join_group(self) -> None:
        self.member_id = self.environment.new_member_id(self.name)
        self._send_full()

    # ---- Heartbeats -----------------------------------------------------------------

    def _send_full(self) -> None:
        """Send a ConsumerGroupHeartbeat request with all fields."""
        self._send(frozenset(self.owned), tuple(self.plan.topics), self._settings.max_poll)

    def _send(
        self,
        owned: frozenset[TopicPartition] | None = None,
        subscription: tuple[str, ...] | None = None,
        rebalance_timeout: int | None = None,
    ) -> None:
        """Send a ConsumerGroupHeartbeat request, in which None means an unchanged field."""
        heartbeat = Heartbeat(
            self.member_id,
            self.generation,
            subscription,
            owned,
            rebalance_timeout,
            self.instance_id,
            self.name,
            self.plan.rack,
        )
        self._schedule_heartbeat()
        response = self._broker.consumer_heartbeat(heartbeat)
        self._request_number += 1
        receive = partial(self._on_heartbeat, self._request_number, response)
        self._clock.after(self.environment.latency(), receive)

    def _on_heartbeat(self, request: int, response: HeartbeatResponse) -> None:
        if request != self._request_number or not self.is_up:
            return
        code = response.code
        if code is NO_ERROR:
            self.generation = response.epoch
            if response.assigned is not None:
                self._pending = response.assigned
            if not self.is_suspended:
                self._must_reach_coordinator = False
                self._reconcile()
                self._resume()
        elif code in RETRIABLE:
            self._heartbeat_timer.cancel()
            self._retry_timer.start(self._settings.backoff)
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self._pending = None
            self._rejoin()
        elif code is ErrorCode.UNRELEASED_INSTANCE_ID:
            self.crash()
            self.start_after(_RESTART_DELAY)
        else:
            self._fail(code)

    def _rejoin(self) -> None:
        self.generation = JOIN_EPOCH
        self._must_reach_coordinator = False
        self._release(self.owned)
        self._resume()
        self._send_full()

    def _reconcile(self) -> None:
        """Revoke and acquire partitions to match the received assignment, then acknowledge it."""
        target, self._pending = self._pending, None
        if target is None:
            return
        owned = frozenset(self.owned)
        if target == owned:
            return
        revoked = Partitions.of(tp for tp in self.owned if tp not in target)
        if len(revoked):
            self._commit()
            self._release(revoked)
        self._acquire(Partitions.of(sorted(target - owned)))
        self._send(frozenset(self.owned))

    def _schedule_heartbeat(self) -> None:
        interval = self.environment.broker_config.heartbeat_interval
        delay = interval + self.environment.random_delay(self._settings.drift)
        self._retry_timer.cancel()
        self._heartbeat_timer.start(delay)

    def _heartbeat(self) -> None:
        if self.is_frozen or self._has_left:
            self._schedule_heartbeat()
        elif self._pending is None and self.generation == JOIN_EPOCH:
            self._send_full()
        else:
            self._send()

    # ---- Suspension and departure ---------------------------------------------------

    def _verify_membership(self) -> None:
        if self._has_left:
            self._continue()
        else:
            self._send_full()

    def _continue(self) -> None:
        if self._has_left:
            self._has_left = False
            self._rejoin()
        elif self._pending is not None:
            # The broker may have fenced the member because it did not reconcile in time.
            self._send()
        else:
            self._resume()

    def _on_max_poll_exceeded(self) -> None:
        self._leave_group()
        self._request_number += 1
        self._has_left = True
        self._pending = None

    def _leave_group(self) -> None:
        epoch = LEAVE_EPOCH if self.instance_id is None else STATIC_LEAVE_EPOCH
        heartbeat = Heartbeat(self.member_id, epoch, instance_id=self.instance_id, client=self.name)
        self._broker.consumer_heartbeat(heartbeat)

    def _on_subscription_change(self) -> None:
        if not self.is_suspended:
            self._send_full()
