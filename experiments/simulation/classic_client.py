"""A consumer of the classic protocol: Java's ``ConsumerCoordinator``, as far as a group sees it.

Upstream: org.apache.kafka.clients.consumer.internals.AbstractCoordinator and
ConsumerCoordinator, kafka-clients 4.x.
"""

from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING

from kassay.experiments.simulation.consumer import Consumer
from kassay.experiments.simulation.policies import GroupProtocol
from kassay.experiments.simulation.script import MemberPlan
from kassay.reference.model.group import NO_GENERATION
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions
from kassay.reference.protocol.consumer_protocol import ConsumerSubscription, StickyUserData
from kassay.reference.protocol.messages import (
    NO_ERROR,
    UNKNOWN_MEMBER,
    ErrorCode,
    JoinRequest,
    JoinResponse,
    SupportedProtocol,
    SyncRequest,
    SyncResponse,
)

if TYPE_CHECKING:
    from kassay.experiments.simulation.simulation import Simulation

_RETRIED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Phase(Enum):
    """Where a consumer is on its way into a generation."""

    OUT = auto()
    JOINING = auto()
    SYNCING = auto()
    MEMBER = auto()


_OUT, _JOINING, _SYNCING, _MEMBER = Phase


class ClassicProtocolClient(Consumer):
    """Joins, syncs, sends heartbeats, and gives up its partitions as its protocol wants."""

    phase: Phase
    generation: int
    memory: StickyUserData | None
    saw: dict[str, int] | None = None
    """As leader, the partition counts that it assigned by."""

    def __init__(self, world: "Simulation", plan: MemberPlan) -> None:
        super().__init__(world, plan)
        self._assignor = world.policy.name
        self._is_eager = world.policy.protocol is GroupProtocol.EAGER

    @property
    def commit_generation(self) -> int:
        """Generation that its commits are made in."""
        return self.generation

    def _reset(self) -> None:
        self.phase = _OUT
        self.member_id = UNKNOWN_MEMBER
        self.generation = NO_GENERATION
        self.memory = None
        self.saw = None
        self._wants_to_join = False

    def _begin(self) -> None:
        self._rejoin()

    # ---- Joining --------------------------------------------------------------------

    def _rejoin(self) -> None:
        """Give up what must be given up first, then join."""
        if self.is_stalled:
            self._wants_to_join = True
            return
        self._wants_to_join = False
        if self.generation == NO_GENERATION:
            self._let_go(self.owned)
            self._resume()
        elif self._is_eager:
            self._commit()
            self._let_go(self.owned)
            self._resume()
        elif any(topic not in self.plan.topics for topic in self.owned.topics):
            self._commit()
            lost = [tp for tp in self.owned if tp.topic not in self.plan.topics]
            self._let_go(Partitions.of(lost))
        self._send_join()

    def _send_join(self) -> None:
        self.phase = _JOINING
        self._must_hear = False
        settings = self._settings
        request = JoinRequest(
            self.member_id,
            (SupportedProtocol(self._assignor, self._subscription()),),
            self.name,
            self.instance_id,
            settings.session,
            settings.max_poll,
        )
        self._broker.join(request, self._ask(self._on_join))

    def _subscription(self) -> ConsumerSubscription:
        topics, memory = self.topics, self.memory
        if not self._is_eager:
            data = None if memory is None else StickyUserData(None, memory.generation)
            return ConsumerSubscription(topics, self.owned, self.generation, self.plan.rack, data)
        data = memory if self._assignor == "sticky" else None
        return ConsumerSubscription(topics, NO_PARTITIONS, self.generation, self.plan.rack, data)

    def _on_join(self, response: JoinResponse) -> None:
        code = response.code
        if code is NO_ERROR:
            self._joined(response)
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._send_join()
        elif code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._forget_membership()
            self._rejoin()
        elif code in _RETRIED:
            self._later(self._rejoin, self._settings.backoff)
        else:
            self.world.tell(self.name, f"gives up: {code}")
            self.crash()

    def _joined(self, response: JoinResponse) -> None:
        self.member_id = response.member_id
        self.generation = response.generation
        self.phase = _SYNCING
        self.saw = None
        self._beat_later()
        if response.leader == self.member_id:
            self.saw = self.world.partition_counts()
        if response.members and not response.skip_assignment:
            assignments = self.world.assign(self, response)
            if assignments is None:
                return
            delay = self.plan.assigning
            if delay:
                self._later(lambda: self._send_sync(assignments), delay)
            else:
                self._send_sync(assignments)
        else:
            self._send_sync(None)

    def _send_sync(self, assignments: dict[str, Partitions] | None) -> None:
        self._must_hear = False
        request = SyncRequest(self.member_id, self.generation, assignments, self.instance_id)
        self._broker.sync(request, self._ask(self._on_sync))

    def _on_sync(self, response: SyncResponse) -> None:
        code = response.code
        if code is NO_ERROR:
            self._complete(response.assignment)
        elif code in _RETRIED:
            self._later(self._rejoin, self._settings.backoff)
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self.world.tell(self.name, f"gives up: {code}")
            self.crash()
        else:
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self._forget_membership()
            elif code is ErrorCode.ILLEGAL_GENERATION:
                self.generation = NO_GENERATION
            self._rejoin()

    def _complete(self, assigned: Partitions) -> None:
        """Take up an assignment; under the cooperative protocol give up the rest and rejoin."""
        self.phase = _MEMBER
        gives_up = False
        if not len(self.owned):
            self._take(assigned)
        elif self.owned != assigned:
            shall, has = frozenset(assigned), frozenset(self.owned)
            revoked = Partitions.of(tp for tp in self.owned if tp not in shall)
            gives_up = bool(len(revoked))
            if gives_up:
                self._commit()
                self._let_go(revoked)
            self._take(Partitions.of(tp for tp in assigned if tp not in has))
        self._resume()
        self.memory = StickyUserData(assigned, self.generation)
        self.world.rebalances.remember(self.member_id, self.memory)
        if gives_up or self._wants_to_join:
            self._rejoin()

    # ---- Heartbeats -----------------------------------------------------------------

    def _beat_later(self) -> None:
        settings = self._settings
        delay = settings.heartbeat + self.world.chance(settings.drift)
        self._heartbeat.start(delay)

    def _beat(self) -> None:
        """Send a heartbeat, unless frozen or waiting to be let in."""
        self._beat_later()
        if self.is_frozen or self.phase in (_OUT, _JOINING):
            return
        code = self._broker.heartbeat(self.member_id, self.generation, self.instance_id)
        if code is not NO_ERROR:
            answer = partial(self._on_heartbeat, code, self.generation)
            self._clock.after(self.world.latency(), answer)

    def _on_heartbeat(self, code: ErrorCode, generation: int) -> None:
        if generation != self.generation or not self.is_up or self.phase is not _MEMBER:
            return
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            if not self._wants_to_join:
                self._wants_to_join = True
                self._later(self._rejoin, self.world.chance(self._settings.poll))
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self.world.tell(self.name, f"gives up: {code}")
            self.crash()
        elif code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._forget_membership()
            self._rejoin()
        elif code is ErrorCode.ILLEGAL_GENERATION:
            self.generation = NO_GENERATION
            self._rejoin()

    def _forget_membership(self) -> None:
        self.member_id = UNKNOWN_MEMBER
        self.generation = NO_GENERATION

    # ---- Being held up, and leaving -----------------------------------------------------

    def _check_in(self) -> None:
        if self.phase is not _MEMBER or self._wants_to_join:
            self._go_on()
            return
        code = self._broker.heartbeat(self.member_id, self.generation, self.instance_id)
        self._ask(self._hear)(code)

    def _hear(self, code: ErrorCode) -> None:
        if code is NO_ERROR:
            self._must_hear = False
            self._resume()
        elif code in _RETRIED:
            self._later(self._check_in, self._settings.backoff)
        else:
            self._on_heartbeat(code, self.generation)

    def _go_on(self) -> None:
        if self._wants_to_join and self.phase in (_MEMBER, _OUT):
            self._rejoin()
        elif self.phase is _MEMBER:
            self._resume()

    def _missed_poll(self) -> None:
        self._say_goodbye()
        self._ticket += 1
        self.phase = _OUT
        self._forget_membership()
        self._wants_to_join = True

    def _say_goodbye(self) -> None:
        if self.instance_id is None and self.member_id:
            self._broker.leave(self.member_id, None)

    def _subscription_changed(self) -> None:
        if self.phase is _MEMBER:
            self._rejoin()
        else:
            self._wants_to_join = True

    def notice_metadata(self) -> None:
        """See that a topic has changed; only the leader joins again for that."""
        if self.saw is not None and self.saw != self.world.partition_counts():
            self._subscription_changed()
