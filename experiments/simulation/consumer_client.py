"""A consumer of the consumer protocol (KIP-848): one heartbeat says and asks everything.

Upstream: org.apache.kafka.clients.consumer.internals.AbstractMembershipManager and
ConsumerHeartbeatRequestManager, kafka-clients 4.x.
"""

from functools import partial
from typing import TYPE_CHECKING

from kassay.experiments.simulation.consumer import Consumer
from kassay.experiments.simulation.script import MemberPlan
from kassay.reference.coordinator.consumer.coordinator import (
    JOIN,
    LEAVE,
    LEAVE_FOR_A_WHILE,
    Heartbeat,
    HeartbeatResponse,
)
from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.reference.protocol.messages import NO_ERROR, ErrorCode

if TYPE_CHECKING:
    from kassay.experiments.simulation.simulation import Simulation

_RETRIED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_SUPERVISOR = 1_000
"""After how many ms a process is started again that ended at UNRELEASED_INSTANCE_ID."""


class ConsumerProtocolClient(Consumer):
    """Reconciles what it has with what it is told, and says so at once."""

    epoch: int

    def __init__(self, world: "Simulation", plan: MemberPlan) -> None:
        super().__init__(world, plan)
        self._retry = self._timer(partial(self._send, full=True))

    @property
    def commit_generation(self) -> int:
        """Epoch that its commits are made in."""
        return self.epoch

    def _reset(self) -> None:
        self.member_id = self.world.new_id(self.name)
        self.epoch = JOIN
        self._pending: frozenset[TopicPartition] | None = None
        self._left = False

    def _begin(self) -> None:
        self._send(full=True)

    def _send(self, *, full: bool = False) -> None:
        """Send a heartbeat; a full one says all that there is to say."""
        beat = Heartbeat(
            self.member_id,
            self.epoch,
            subscription=tuple(self.plan.topics) if full else None,
            owned=frozenset(self.owned) if full else None,
            rebalance_timeout=self._settings.max_poll if full else None,
            instance_id=self.instance_id,
            client=self.name,
            rack=self.plan.rack,
        )
        self._beat_later()
        self._deliver(self._broker.consumer_heartbeat(beat))

    def _acknowledge(self) -> None:
        """Say what is owned now, as soon as that has changed."""
        beat = Heartbeat(
            self.member_id,
            self.epoch,
            owned=frozenset(self.owned),
            instance_id=self.instance_id,
            client=self.name,
        )
        self._beat_later()
        self._deliver(self._broker.consumer_heartbeat(beat))

    def _deliver(self, response: HeartbeatResponse) -> None:
        self._ticket += 1
        ticket = self._ticket

        def arrive() -> None:
            if ticket == self._ticket and self.is_up:
                self._on_heartbeat(response)

        self._clock.after(self.world.latency(), arrive)

    def _on_heartbeat(self, response: HeartbeatResponse) -> None:
        code = response.code
        if code is NO_ERROR:
            self.epoch = response.epoch
            if response.assigned is not None:
                self._pending = response.assigned
            if not self.is_stalled:
                self._must_hear = False
                self._apply()
                self._resume()
        elif code in _RETRIED:
            self._heartbeat.cancel()
            self._retry.start(self._settings.backoff)
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self.epoch = JOIN
            self._pending = None
            self._must_hear = False
            self._let_go(self.owned)
            self._resume()
            self._send(full=True)
        elif code is ErrorCode.UNRELEASED_INSTANCE_ID:
            self.crash()
            self.start_after(_SUPERVISOR)
        else:
            self.world.tell(self.name, f"gives up: {code}")
            self.crash()

    def _apply(self) -> None:
        """Revoke, then take; either is told to the coordinator at once."""
        shall, self._pending = self._pending, None
        if shall is None:
            return
        has = frozenset(self.owned)
        if shall == has:
            return
        revoked = Partitions.of(tp for tp in self.owned if tp not in shall)
        if len(revoked):
            self._commit()
            self._let_go(revoked)
        self._take(Partitions.of(sorted(shall - has)))
        self._acknowledge()

    def _beat_later(self) -> None:
        interval = self.world.broker_config.heartbeat_interval
        delay = interval + self.world.chance(self._settings.drift)
        self._retry.cancel()
        self._heartbeat.start(delay)

    def _beat(self) -> None:
        if self.is_frozen or self._left:
            self._beat_later()
        elif self._pending is not None:
            # It has yet to poll to reconcile; nothing new to say.
            self._send()
        else:
            self._send(full=self.epoch == JOIN)

    # ---- Being held up, and leaving -----------------------------------------------------

    def _check_in(self) -> None:
        if self._left:
            self._go_on()
        else:
            self._send(full=True)

    def _go_on(self) -> None:
        if self._left:
            self._left = self._must_hear = False
            self._let_go(self.owned)
            self.epoch = JOIN
            self._resume()
            self._send(full=True)
        elif self._pending is not None:
            # It may have been put out meanwhile for not reconciling.
            self._send()
        else:
            self._resume()

    def _missed_poll(self) -> None:
        self._say_goodbye()
        self._ticket += 1
        self._left = True
        self._pending = None

    def _say_goodbye(self) -> None:
        epoch = LEAVE if self.instance_id is None else LEAVE_FOR_A_WHILE
        beat = Heartbeat(self.member_id, epoch, instance_id=self.instance_id, client=self.name)
        self._broker.consumer_heartbeat(beat)

    def _subscription_changed(self) -> None:
        if not self.is_stalled:
            self._send(full=True)
