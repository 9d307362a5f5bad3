"""A consumer of the classic protocol: Java's ``ConsumerCoordinator``, as far as a group sees it.

Upstream: org.apache.kafka.clients.consumer.internals.AbstractCoordinator and
ConsumerCoordinator, kafka-clients 4.x.
"""

from enum import Enum, auto

from experiments.simulate.consumer import Consumer
from experiments.simulate.policies import Protocol
from reference.coordinator.messages import (
    UNKNOWN_MEMBER,
    Code,
    JoinRequest,
    JoinResponse,
    Offer,
    SyncRequest,
    SyncResponse,
)
from reference.coordinator.payload import Memory, Subscription
from reference.group import NO_GENERATION
from reference.partitions import NOTHING, Partitions

_RETRIED = (Code.NOT_COORDINATOR, Code.COORDINATOR_NOT_AVAILABLE)


class Phase(Enum):
    """Where a consumer is on its way into a generation."""

    OUT = auto()
    JOINING = auto()
    SYNCING = auto()
    MEMBER = auto()


class ClassicConsumer(Consumer):
    """Joins, syncs, sends heartbeats, and gives up its partitions as its protocol wants."""

    phase: Phase
    generation: int
    memory: Memory | None
    saw: dict[str, int] | None = None
    """As leader, the partition counts that it assigned by."""

    @property
    def commit_generation(self) -> int:
        """Generation that its commits are made in."""
        return self.generation

    def _reset(self) -> None:
        self.phase = Phase.OUT
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
        elif self.world.policy.protocol is Protocol.EAGER:
            self._commit()
            self._let_go(self.owned)
            self._resume()
        elif any(topic not in self.plan.topics for topic in self.owned.topics):
            self._commit()
            lost = [tp for tp in self.owned if tp.topic not in self.plan.topics]
            self._let_go(Partitions.of(lost))
        self._send_join()

    def _send_join(self) -> None:
        self.phase = Phase.JOINING
        self._must_hear = False
        settings = self.world.settings
        request = JoinRequest(
            self.member_id,
            (Offer(self.world.policy.name, self._subscription()),),
            client=self.name,
            instance_id=self.instance_id,
            session_timeout=settings.session,
            rebalance_timeout=settings.max_poll,
        )
        self.world.broker.join(request, self._ask(self._on_join))

    def _subscription(self) -> Subscription:
        topics = self.topics
        name, memory = self.world.policy.name, self.memory
        if self.world.policy.protocol is Protocol.COOPERATIVE:
            data = None if memory is None else Memory(None, memory.generation)
            return Subscription(topics, self.owned, self.generation, self.plan.rack, data)
        data = memory if name == "sticky" else None
        return Subscription(topics, NOTHING, self.generation, self.plan.rack, data)

    def _on_join(self, response: JoinResponse) -> None:
        code = response.code
        if code is Code.NONE:
            self._joined(response)
        elif code is Code.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._send_join()
        elif code is Code.UNKNOWN_MEMBER_ID:
            self._forget_membership()
            self._rejoin()
        elif code in _RETRIED:
            self._later(self._rejoin, self.world.settings.backoff)
        else:
            self.world.tell(self.name, f"gives up: {code}")
            self.crash()

    def _joined(self, response: JoinResponse) -> None:
        self.member_id = response.member_id
        self.generation = response.generation
        self.phase = Phase.SYNCING
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
        self.world.broker.sync(request, self._ask(self._on_sync))

    def _on_sync(self, response: SyncResponse) -> None:
        code = response.code
        if code is Code.NONE:
            self._complete(response.assignment)
        elif code in _RETRIED:
            self._later(self._rejoin, self.world.settings.backoff)
        elif code is Code.FENCED_INSTANCE_ID:
            self.world.tell(self.name, f"gives up: {code}")
            self.crash()
        else:
            if code is Code.UNKNOWN_MEMBER_ID:
                self._forget_membership()
            elif code is Code.ILLEGAL_GENERATION:
                self.generation = NO_GENERATION
            self._rejoin()

    def _complete(self, assigned: Partitions) -> None:
        """Take up an assignment; under the cooperative protocol give up the rest and rejoin."""
        self.phase = Phase.MEMBER
        revoked = NOTHING
        if not len(self.owned):
            self._take(assigned)
        elif self.owned != assigned:
            shall, has = frozenset(assigned), frozenset(self.owned)
            revoked = Partitions.of(tp for tp in self.owned if tp not in shall)
            if len(revoked):
                self._commit()
            self._let_go(revoked)
            self._take(Partitions.of(tp for tp in assigned if tp not in has))
        self._resume()
        self.memory = Memory(assigned, self.generation)
        self.world.rebalances.remember(self.member_id, self.memory)
        if len(revoked) or self._wants_to_join:
            self._rejoin()

    # ---- Heartbeats -----------------------------------------------------------------

    def _beat_later(self) -> None:
        settings = self.world.settings
        delay = settings.heartbeat + self.world.chance(settings.drift)
        self.world.clock.set_timer(("heartbeat", self.name), delay, self._beat)

    def _beat(self) -> None:
        """Send a heartbeat, unless frozen or waiting to be let in."""
        self._beat_later()
        if self.is_frozen or self.phase in (Phase.OUT, Phase.JOINING):
            return
        code = self.world.broker.heartbeat(self.member_id, self.generation, self.instance_id)
        if code is not Code.NONE:
            generation = self.generation
            self.world.clock.after(
                self.world.latency(), lambda: self._on_heartbeat(code, generation)
            )

    def _on_heartbeat(self, code: Code, generation: int) -> None:
        if generation != self.generation or not self.is_up or self.phase is not Phase.MEMBER:
            return
        if code is Code.REBALANCE_IN_PROGRESS:
            if not self._wants_to_join:
                self._wants_to_join = True
                self._later(self._rejoin, self.world.chance(self.world.settings.poll))
        elif code is Code.FENCED_INSTANCE_ID:
            self.world.tell(self.name, f"gives up: {code}")
            self.crash()
        elif code is Code.UNKNOWN_MEMBER_ID:
            self._forget_membership()
            self._rejoin()
        elif code is Code.ILLEGAL_GENERATION:
            self.generation = NO_GENERATION
            self._rejoin()

    def _forget_membership(self) -> None:
        self.member_id = UNKNOWN_MEMBER
        self.generation = NO_GENERATION

    # ---- Being held up, and leaving -----------------------------------------------------

    def _check_in(self) -> None:
        if self.phase is not Phase.MEMBER or self._wants_to_join:
            self._go_on()
            return
        code = self.world.broker.heartbeat(self.member_id, self.generation, self.instance_id)
        self._ask(self._hear)(code)

    def _hear(self, code: Code) -> None:
        if code is Code.NONE:
            self._must_hear = False
            self._resume()
        elif code in _RETRIED:
            self._later(self._check_in, self.world.settings.backoff)
        else:
            self._on_heartbeat(code, self.generation)

    def _go_on(self) -> None:
        if self._wants_to_join and self.phase in (Phase.MEMBER, Phase.OUT):
            self._rejoin()
        elif self.phase is Phase.MEMBER:
            self._resume()

    def _missed_poll(self) -> None:
        self._say_goodbye()
        self._ticket += 1
        self.phase = Phase.OUT
        self._forget_membership()
        self._wants_to_join = True

    def _say_goodbye(self) -> None:
        if self.instance_id is None and self.member_id:
            self.world.broker.leave(self.member_id, None)

    def _subscription_changed(self) -> None:
        if self.phase is Phase.MEMBER:
            self._rejoin()
        else:
            self._wants_to_join = True

    def notice_metadata(self) -> None:
        """See that a topic has changed; only the leader joins again for that."""
        if self.saw is not None and self.saw != self.world.partition_counts():
            self._subscription_changed()
