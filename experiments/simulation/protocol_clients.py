"""Simulated consumers that use the classic protocol or the consumer protocol (KIP-848).

Upstream, in org.apache.kafka.clients.consumer.internals of kafka-clients 4.x: AbstractCoordinator
and ConsumerCoordinator; AbstractMembershipManager and ConsumerHeartbeatRequestManager.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import TypeVar

from kassay.experiments.simulation.script import MemberPlan
from kassay.experiments.simulation.simulated_cluster import Environment
from kassay.reference.assignors import RebalanceProtocol, kafka_name
from kassay.reference.coordinator.consumer_protocol_coordinator import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
    Heartbeat,
    HeartbeatResponse,
)
from kassay.reference.coordinator.runtime import Timer
from kassay.reference.model.assignment import Assignment, LivelockError
from kassay.reference.model.group import NO_GENERATION
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol.group_messages import (
    NO_ERROR,
    UNKNOWN_MEMBER,
    ConsumerSubscription,
    ErrorCode,
    JoinRequest,
    JoinResponse,
    MemberMetadata,
    StickyUserData,
    SupportedProtocol,
    SyncRequest,
    SyncResponse,
)

_UNBOUNDED = 1 << 40
"""Duration in ms of an assignment that does not terminate, longer than any simulation."""
RETRIABLE = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
"""Error codes after which a consumer sends its request again."""

_T = TypeVar("_T")


class Consumer(ABC):
    """Simulated consumer process. It is stopped, running or suspended.

    A suspended consumer is either stalled or frozen. A stalled consumer does not poll: it
    neither consumes nor rejoins, but it sends heartbeats. A frozen consumer (for example in a
    long garbage collection) does nothing. Then it must reach the coordinator before it consumes.
    """

    generation: int  # generation, or member epoch under the consumer protocol

    def __init__(self, environment: Environment, plan: MemberPlan) -> None:
        self.environment = environment
        self._clock, self._settings = environment.clock, environment.settings
        self._broker = environment.broker
        self._ownership, self._offsets = environment.ownership, environment.offsets
        self.plan = plan
        self.topics = tuple(sorted(plan.topics))
        self.name = plan.id
        self.instance_id = plan.id if plan.static else None
        self.member_id = ""
        self.owned: Partitions = NO_PARTITIONS
        self.is_up = False
        self.is_suspended = False
        self.is_frozen = False
        self._request_number = 0
        self._deferred: list[Callable[[], None]] = []
        self._consumes = True
        self._must_reach_coordinator = False
        self._committed_at = 0
        self._start_timer = environment.clock.timer(self.start)
        self._timers: list[Timer] = []
        self._heartbeat_timer = self._timer(self._heartbeat)
        self._poll_timer = self._timer(self._poll)
        self._max_poll_timer = self._timer(self._on_max_poll_exceeded)
        self._resume_timer = self._timer(self._end_suspension)

    # ---- Process --------------------------------------------------------------------

    def start_after(self, delay: int) -> None:
        """Start the consumer process after a delay in milliseconds."""
        self._start_timer.start(delay)

    def start(self) -> None:
        """Start the consumer process."""
        self._start_process()
        if self._settings.start_up:
            self._schedule(self._join_group, self._settings.start_up)
        else:
            self._join_group()
        self._start_polls()

    def continue_membership(self, member_id: str, owned: Partitions, generation: int) -> None:
        """Start as a member that a stable group already contains."""
        self._start_process()
        self.member_id = member_id
        self._acquire(owned)
        self._continue_membership(generation)
        self._start_polls()

    def _start_process(self) -> None:
        self._start_timer.cancel()
        self.is_up = True
        self.is_suspended = self.is_frozen = False
        self._consumes = True
        self._must_reach_coordinator = False
        self._deferred.clear()
        self._request_number += 1
        self._reset()

    def _start_polls(self) -> None:
        if self._offsets.is_active:
            self._poll_timer.start(self._settings.poll)

    def leave(self) -> None:
        """Close the consumer: commit offsets, and leave the group unless it is static."""
        if self.is_up:
            self._commit()
            if self.plan.leaves:
                self._leave_group()
            self._end()

    def crash(self) -> None:
        """Stop the consumer process without leaving the group."""
        if self.is_up:
            self._end()

    def _end(self) -> None:
        self._release(self.owned)
        self.is_up = False
        self._request_number += 1
        for timer in self._timers:
            timer.cancel()

    def _fail(self, code: ErrorCode) -> None:
        self.environment.add_note(self.name, f"stops with {code}")
        self.crash()

    def _timer(self, action: Callable[[], None]) -> Timer:
        timer = self._clock.timer(action)
        self._timers.append(timer)
        return timer

    def suspend(self, duration: int, *, frozen: bool) -> None:
        """Stop polling or, if ``frozen``, the whole process, for ``duration`` ms."""
        if self.is_up:
            if self._consumes and len(self.owned):
                self._ownership.release(self.owned, self._clock.now)
            self._consumes = False
            self.is_suspended = True
            self.is_frozen = self.is_frozen or frozen
            self._resume_timer.start(duration)
            if self.is_frozen:
                self._max_poll_timer.cancel()
            else:
                self._max_poll_timer.start(self._settings.max_poll)

    def _end_suspension(self) -> None:
        was_frozen, self.is_frozen, self.is_suspended = self.is_frozen, False, False
        self._max_poll_timer.cancel()
        deferred, self._deferred = self._deferred, []
        # The deferred responses may be out of date, and the group may have rebalanced.
        self._must_reach_coordinator = was_frozen or bool(deferred)
        for handle in deferred:
            handle()
        if self._must_reach_coordinator:
            self._verify_membership()
        else:
            self._continue()

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Change the subscription of the consumer."""
        self.plan = replace(self.plan, topics=topics)
        self.topics = tuple(sorted(topics))
        if self.is_up:
            self._on_subscription_change()

    # ---- Consumption --------------------------------------------------------------------

    def _acquire(self, partitions: Partitions) -> None:
        if len(partitions):
            owned = self.owned
            self.owned = Partitions.of([*owned, *partitions]) if len(owned) else partitions
            self._offsets.seek_to_committed(partitions)
            if self._consumes:
                self._ownership.acquire(self.name, partitions, self._clock.now)

    def _release(self, partitions: Partitions) -> None:
        if len(partitions):
            if self._consumes:
                self._ownership.release(partitions, self._clock.now)
            if partitions is self.owned:
                self.owned = NO_PARTITIONS
            else:
                released = frozenset(partitions)
                self.owned = Partitions.of(tp for tp in self.owned if tp not in released)

    def _resume(self) -> None:
        if not (self._consumes or self.is_suspended or self._must_reach_coordinator):
            self._consumes = True
            if len(self.owned):
                self._ownership.acquire(self.name, self.owned, self._clock.now)

    def _poll(self) -> None:
        now = self._clock.now
        self._poll_timer.start(self._settings.poll)
        self._offsets.lag(now)
        if self._consumes:
            rate = self.plan.rate
            limit = None if rate is None else rate * self._settings.poll // 1000
            self._offsets.read(self.owned, limit, now)
            if now - self._committed_at >= self._settings.commit:
                self._commit()

    def _commit(self) -> None:
        self._committed_at = self._clock.now
        if self._consumes and self._offsets.is_active and len(self.owned):
            offsets = self._offsets.positions(self.owned)
            self._broker.commit(self.member_id, self.generation, offsets)

    # ---- Requests ---------------------------------------------------------------------

    def _response_to(self, handle: Callable[[_T], None]) -> Callable[[_T], None]:
        """Return a function that handles the response to a new request after a delay.

        The response is handled after the network latency, unless the consumer sends another
        request first.
        """
        self._request_number += 1
        return partial(self._send_response, self._request_number, handle)

    def _send_response(self, request: int, handle: Callable[[_T], None], response: _T) -> None:
        if request == self._request_number:
            receive = partial(self._receive, request, handle, response)
            self._clock.after(self.environment.latency(), receive)

    def _schedule(self, action: Callable[[], None], delay: int) -> None:
        """Run an action after a delay in ms, unless the consumer sends another request."""
        self._request_number += 1
        self._clock.after(delay, partial(self._receive, self._request_number, action))

    def _receive(self, request: int, handle: Callable[..., None], *response: object) -> None:
        if request != self._request_number:
            return
        if self.is_suspended:
            self._deferred.append(partial(self._receive, request, handle, *response))
        else:
            handle(*response)

    @abstractmethod
    def _reset(self) -> None: ...

    @abstractmethod
    def _continue_membership(self, generation: int) -> None: ...

    @abstractmethod
    def _join_group(self) -> None: ...

    @abstractmethod
    def _heartbeat(self) -> None: ...

    @abstractmethod
    def _leave_group(self) -> None: ...

    @abstractmethod
    def _verify_membership(self) -> None: ...  # after a freeze

    @abstractmethod
    def _continue(self) -> None: ...  # after a stall

    @abstractmethod
    def _on_max_poll_exceeded(self) -> None: ...

    @abstractmethod
    def _on_subscription_change(self) -> None: ...


class Phase(Enum):
    """State of a consumer of the classic protocol, from joining to a stable generation."""

    UNJOINED = auto()
    JOINING = auto()
    SYNCING = auto()
    STABLE = auto()


_UNJOINED, _JOINING, _SYNCING, _STABLE = Phase


class ClassicProtocolClient(Consumer):
    """Simulated consumer that uses the classic protocol."""

    phase: Phase
    user_data: StickyUserData | None
    assigned_counts: dict[str, int] | None = None
    """Partition counts at the last assignment by this consumer as leader."""

    def __init__(self, environment: Environment, plan: MemberPlan) -> None:
        super().__init__(environment, plan)
        self._assignors = plan.assignors or (environment.policy.name,)
        protocols = {environment.policy_of(name).protocol for name in self._assignors}
        self._is_eager = RebalanceProtocol.EAGER in protocols
        # Of the libraries, librdkafka sends user data. It refuses assignors of both protocols.
        self._is_refused = plan.sends_user_data and len(protocols) > 1
        self._selected: str | None = None
        self._assigned_by: str | None = None

    def _reset(self) -> None:
        self.phase = _UNJOINED
        self._reset_membership()
        self.user_data = None
        self.assigned_counts = None
        self._selected = self._assigned_by = None
        self._rejoin_needed = False
        self._has_joined_twice = False

    def _reset_membership(self) -> None:
        self.member_id = UNKNOWN_MEMBER
        self.generation = NO_GENERATION

    def _continue_membership(self, generation: int) -> None:
        self.phase, self.generation = _STABLE, generation
        self._selected = self._assigned_by = self._assignors[0]
        self.user_data = StickyUserData(self.owned, generation)
        self.environment.user_data[self.member_id] = self.user_data
        # Members that joined one rebalance send heartbeats at almost the same time.
        phase = self.environment.heartbeat_phase + self.environment.random_delay(
            min(self._settings.spread, self._settings.heartbeat)
        )
        self._heartbeat_timer.start(phase % self._settings.heartbeat)

    def member_metadata(self) -> MemberMetadata:
        """Return the metadata that the coordinator stores about this member."""
        return MemberMetadata(self._join_request(self._assignors[:1]), self.owned)

    # ---- Join phase and sync phase --------------------------------------------------

    def _join_group(self) -> None:
        """Revoke the partitions that the protocol requires, and send a JoinGroup request."""
        if self._is_refused:
            self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return
        if self.is_suspended:
            self._rejoin_needed = True
            return
        self._rejoin_needed = False
        is_member = self.generation != NO_GENERATION
        if self._is_eager or not is_member:
            if is_member:
                self._commit()
            self._release(self.owned)
            self._resume()
        elif any(topic not in self.plan.topics for topic in self.owned.topics):
            self._commit()
            unsubscribed = [tp for tp in self.owned if tp.topic not in self.plan.topics]
            self._release(Partitions.of(unsubscribed))
        self._send_join()

    def _send_join(self) -> None:
        self.phase = _JOINING
        self._must_reach_coordinator = False
        request = self._join_request(self._assignors)
        self._broker.join(request, self._response_to(self._on_join))

    def _join_request(self, assignors: Sequence[str]) -> JoinRequest:
        return JoinRequest(
            self.member_id,
            tuple(SupportedProtocol(name, self._subscription(name)) for name in assignors),
            self.name,
            self.instance_id,
            self._settings.session,
            self._settings.max_poll,
        )

    def _subscription(self, assignor: str) -> ConsumerSubscription:
        """Return the subscription for an assignor, with the user data of its last assignment."""
        data = self.user_data if assignor == self._assigned_by else None
        owned = NO_PARTITIONS if self._is_eager else self.owned
        if self.environment.policy_of(assignor).protocol is RebalanceProtocol.COOPERATIVE:
            data = None if data is None else StickyUserData(None, data.generation)
        elif assignor != "sticky":
            data = None
        return ConsumerSubscription(self.topics, owned, self.generation, self.plan.rack, data)

    def _on_join(self, response: JoinResponse) -> None:
        code = response.code
        if code is NO_ERROR:
            self._joined(response)
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._send_join()
        elif code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._rejoin_after(code)
        elif code in RETRIABLE:
            self._schedule(self._join_group, self._settings.backoff)
        else:
            self._fail(code)

    def _rejoin_after(self, code: ErrorCode) -> None:
        """Join again after an error. Request a new member id if the old id is unknown."""
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._reset_membership()
        elif code is ErrorCode.ILLEGAL_GENERATION:
            self.generation = NO_GENERATION
        self._join_group()

    def _joined(self, response: JoinResponse) -> None:
        self.member_id = response.member_id
        self.generation = response.generation
        self._selected = response.protocol
        self.phase = _SYNCING
        self.assigned_counts = None
        self._schedule_heartbeat()
        if response.leader == self.member_id:
            self.assigned_counts = self.environment.partition_counts()
            if self._joins_again():
                return
        if not response.members or response.skip_assignment:
            self._send_sync(None)
            return
        policy = self.environment.policy_of(response.protocol)
        group = self.environment.group_of(response.members, policy)
        leading = self.environment.policy_of_leader(
            self.member_id, response.generation, response.protocol
        )
        assignment = self.environment.assign(group, response.generation, leading)
        if isinstance(assignment, LivelockError):
            self.suspend(_UNBOUNDED, frozen=False)
        elif not isinstance(assignment, Assignment):
            self.leave()
        elif self.plan.assignment_time:
            send = partial(self._send_sync, dict(assignment))
            self._schedule(send, self.plan.assignment_time)
        else:
            self._send_sync(dict(assignment))

    def _joins_again(self) -> bool:
        """Send a second JoinGroup request if aiokafka does so, and return whether it is sent."""
        is_first = self.plan.joins_twice and self._selected == "sticky"
        self._has_joined_twice = is_first and not self._has_joined_twice
        if self._has_joined_twice:
            claimed = self.user_data if self._assigned_by == "sticky" else None
            partitions = None if claimed is None else claimed.partitions
            self.user_data = StickyUserData(partitions or NO_PARTITIONS, self.generation)
            self._assigned_by = "sticky"
            self._send_join()
        return self._has_joined_twice

    def _send_sync(self, assignments: dict[str, Partitions] | None) -> None:
        self._must_reach_coordinator = False
        has_data = self.plan.sends_user_data and self._selected == "cooperative-sticky"
        request = SyncRequest(
            self.member_id,
            self.generation,
            assignments,
            self.instance_id,
            has_user_data=has_data and assignments is not None,
        )
        self._broker.sync(request, self._response_to(self._on_sync))

    def _on_sync(self, response: SyncResponse) -> None:
        code = response.code
        if code is NO_ERROR:
            self._on_assignment(response.assignment)
        elif code in RETRIABLE:
            self._schedule(self._join_group, self._settings.backoff)
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self._fail(code)
        else:
            self._rejoin_after(code)

    def _on_assignment(self, assigned: Partitions) -> None:
        self.phase = _STABLE
        revoked = NO_PARTITIONS
        if not len(self.owned):
            self._acquire(assigned)
        elif self.owned != assigned:
            new, old = frozenset(assigned), frozenset(self.owned)
            revoked = Partitions.of(tp for tp in self.owned if tp not in new)
            if len(revoked):
                self._commit()
                self._release(revoked)
            self._acquire(Partitions.of(tp for tp in assigned if tp not in old))
        self._resume()
        self.user_data = StickyUserData(assigned, self.generation)
        self._assigned_by = self._selected
        self.environment.user_data[self.member_id] = self.user_data
        if len(revoked) or self._rejoin_needed:
            self._join_group()

    # ---- Heartbeats -----------------------------------------------------------------

    def _schedule_heartbeat(self) -> None:
        drift = self.environment.random_delay(self._settings.drift)
        self._heartbeat_timer.start(self._settings.heartbeat + drift)

    def _heartbeat(self) -> None:
        self._schedule_heartbeat()
        if self.is_frozen or self.phase in (_UNJOINED, _JOINING):
            return
        code = self._broker.heartbeat(self.member_id, self.generation, self.instance_id)
        if code is not NO_ERROR:
            receive = partial(self._on_heartbeat, code, self.generation)
            self._clock.after(self.environment.latency(), receive)

    def _on_heartbeat(self, code: ErrorCode, generation: int) -> None:
        if generation != self.generation or not self.is_up or self.phase is not _STABLE:
            return
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            if not self._rejoin_needed:
                self._rejoin_needed = True
                delay = self.environment.random_delay(self._settings.poll)
                self._schedule(self._join_group, delay)
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self._fail(code)
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._rejoin_after(code)

    # ---- Suspension and departure ---------------------------------------------------

    def _verify_membership(self) -> None:
        if self.phase is not _STABLE or self._rejoin_needed:
            self._continue()
            return
        code = self._broker.heartbeat(self.member_id, self.generation, self.instance_id)
        self._response_to(self._on_verification)(code)

    def _on_verification(self, code: ErrorCode) -> None:
        if code is NO_ERROR:
            self._must_reach_coordinator = False
            self._resume()
        elif code in RETRIABLE:
            self._schedule(self._verify_membership, self._settings.backoff)
        else:
            self._on_heartbeat(code, self.generation)

    def _continue(self) -> None:
        if self._rejoin_needed and self.phase in (_STABLE, _UNJOINED):
            self._join_group()
        elif self.phase is _STABLE:
            self._resume()

    def _on_max_poll_exceeded(self) -> None:
        self._leave_group()
        self._request_number += 1
        self.phase = _UNJOINED
        self._reset_membership()
        self._rejoin_needed = True

    def _leave_group(self) -> None:
        if self.instance_id is None and self.member_id:
            self._broker.leave(self.member_id)

    def _on_subscription_change(self) -> None:
        if self.phase is _STABLE:
            self._join_group()
        else:
            self._rejoin_needed = True

    def refresh_metadata(self) -> None:
        """Join again if this member is the leader and partition counts have changed."""
        counts = self.assigned_counts
        if counts is not None and counts != self.environment.partition_counts():
            self._on_subscription_change()


_RESTART_DELAY = 1_000
"""Delay in ms before a process that stopped with UNRELEASED_INSTANCE_ID restarts."""


class ConsumerProtocolClient(Consumer):
    """Simulated consumer that uses the consumer protocol."""

    _starts = 0

    def __init__(self, environment: Environment, plan: MemberPlan) -> None:
        super().__init__(environment, plan)
        self._assignor = kafka_name(
            plan.assignors[0] if plan.assignors else environment.policy.name
        )
        self._retry_timer = self._timer(self._send_full)

    def _reset(self) -> None:
        self.generation = JOIN_EPOCH
        self._pending: frozenset[TopicPartition] | None = None
        self._has_left = False
        self._starts += 1

    def _continue_membership(self, generation: int) -> None:
        self.generation = generation
        interval = self.environment.broker_config.heartbeat_interval
        phase = self.environment.heartbeat_phase * interval // self._settings.heartbeat
        phase += self.environment.random_delay(min(self._settings.spread, interval))
        self._heartbeat_timer.start(phase % interval)

    def member(self) -> ConsumerMember:
        """Return the state that the coordinator stores about this member."""
        return ConsumerMember(
            id=self.member_id,
            subscription=self.topics,
            instance_id=self.instance_id,
            client=self.name,
            rack=self.plan.rack,
            rebalance_timeout=self._settings.max_poll,
            assignor=self._assignor,
            epoch=self.generation,
            previous_epoch=self.generation,
            assigned=frozenset(self.owned),
        )

    def _join_group(self) -> None:
        self.member_id = self.environment.new_member_id(self.name, is_classic=False)
        self._send_full()

    # ---- Heartbeats -----------------------------------------------------------------

    def _send_full(self) -> None:
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
            None if subscription is None else self._assignor,
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
                self._resume()
                if self._pending is not None and self._settings.reconcile:
                    delay = self.environment.random_delay(self._settings.reconcile)
                    self._clock.after(delay, partial(self._reconcile_later, self._starts))
                else:
                    self._reconcile()
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

    def _reconcile_later(self, start: int) -> None:
        if start == self._starts and self.is_up and not self.is_suspended:
            self._reconcile()

    def _reconcile(self) -> None:
        """Revoke partitions, acquire others, and send the resulting owned partitions."""
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
