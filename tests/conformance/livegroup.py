"""A real consumer group whose members come, go and change, one step at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

from tests.conformance.admin import Administrator, GroupView
from tests.conformance.consumers import DoomedConsumer, Profile, RunningConsumer, Seen

_SETTLE_SECONDS = 60.0


class LiveGroup:
    """The consumers of one group, and what each subscribes to now.

    Parameters
    ----------
    name
        Group id.
    bootstrap
        The cluster.
    admin
        Asked how the group is.
    partitions
        Topics of the cluster and their partition counts.
    """

    def __init__(
        self, name: str, bootstrap: str, admin: Administrator, partitions: Mapping[str, int]
    ) -> None:
        self.name = name
        self.consumers: dict[str, RunningConsumer | DoomedConsumer] = {}
        self.subscriptions: dict[str, tuple[str, ...]] = {}
        self._bootstrap = bootstrap
        self._admin = admin
        self._partitions = partitions
        self._seen: dict[str, Seen] = {}

    @property
    def running(self) -> dict[str, RunningConsumer]:
        """Consumers of this process, by client id."""
        return {
            client: consumer
            for client, consumer in self.consumers.items()
            if isinstance(consumer, RunningConsumer)
        }

    @property
    def generation(self) -> int:
        """Generation that the group was in when it was last found settled."""
        [generation] = {seen.generation for seen in self._seen.values()}
        return generation

    def given(self, client: str) -> frozenset[int]:
        """Generations that a member had been given an assignment in by then."""
        return self._seen[client].given

    def join(self, *profiles: Profile) -> None:
        """Start consumers together."""
        for profile in profiles:
            self.subscriptions[profile.client] = profile.topics
            self.consumers[profile.client] = RunningConsumer(self._bootstrap, self.name, profile)

    def join_doomed(self, profile: Profile) -> None:
        """Start a consumer in a process of its own, to be killed later."""
        self.subscriptions[profile.client] = profile.topics
        self.consumers[profile.client] = DoomedConsumer(self._bootstrap, self.name, profile)

    def leave(self, client: str) -> None:
        """Have one consumer leave."""
        self.running[client].leave()
        self._forget(client)

    def kill(self, client: str) -> None:
        """Kill the process of a doomed consumer."""
        doomed = self.consumers[client]
        if not isinstance(doomed, DoomedConsumer):
            raise TypeError(f"consumer {client!r} has no process of its own")
        doomed.kill()
        self._forget(client)

    def freeze(self, client: str) -> None:
        """Have one consumer stop polling."""
        self.running[client].freeze()

    def subscribe(self, client: str, *topics: str) -> None:
        """Change one subscription, and wait until the group has rebalanced for it."""
        consumer = self.running[client]
        self.subscriptions[client] = topics
        before = consumer.subscribe(*topics)
        deadline = time.monotonic() + _SETTLE_SECONDS
        while consumer.seen.generation <= before:
            consumer.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{client!r} is in generation {before} as before")
            time.sleep(0.05)

    def close(self) -> None:
        """End every consumer, without a care for how it or the group then is."""
        for consumer in self.consumers.values():
            if isinstance(consumer, DoomedConsumer):
                consumer.kill()
            else:
                with suppress(RuntimeError, TimeoutError):
                    consumer.abandon()

    def await_settled(self) -> GroupView:
        """Wait until consumers and cluster agree on an assignment of every partition."""
        return self.await_state("Stable")

    def await_state(self, state: str) -> GroupView:
        """Wait until the group is in ``state`` and, if that is Stable, settled as well."""
        return self._admin.await_group(
            self.name,
            lambda view: view.state == state and (state != "Stable" or self._is_settled(view)),
            seconds=_SETTLE_SECONDS,
        )

    def _is_settled(self, view: GroupView) -> bool:
        """Whether ``view`` is all there is to say of the group.

        Cluster and consumers cannot be asked at one instant. What the consumers say must
        be the same before and after the cluster was asked, and of one generation.
        """
        before, self._seen = self._seen, self._ask()
        wanted = {
            (topic, partition)
            for topics in self.subscriptions.values()
            for topic in topics
            for partition in range(self._partitions.get(topic, 0))
        }
        return (
            view.is_settled
            and before == self._seen
            and len({seen.generation for seen in before.values()}) == 1
            and {client: member.assigned for client, member in view.members.items()}
            == {client: seen.assigned for client, seen in before.items()}
            and wanted == {pair for seen in before.values() for pair in seen.assigned}
        )

    def _ask(self) -> dict[str, Seen]:
        """What every consumer knows of its membership."""
        for consumer in self.consumers.values():
            consumer.check()
        return {client: consumer.seen for client, consumer in self.consumers.items()}

    def _forget(self, client: str) -> None:
        del self.consumers[client], self.subscriptions[client]
