"""Real consumer group whose members join, leave and change step by step."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

from tests.conformance.admin import Administrator, GroupView
from tests.conformance.consumers import KillableConsumer, Membership, Profile, RunningConsumer

_STABLE_SECONDS = 60.0


class RunningGroup:
    """Consumers of one group and their subscriptions.

    ``partitions`` are the partition counts of the cluster's topics.
    """

    def __init__(
        self, name: str, bootstrap: str, admin: Administrator, partitions: Mapping[str, int]
    ) -> None:
        self.name = name
        self.consumers: dict[str, RunningConsumer | KillableConsumer] = {}
        self.subscriptions: dict[str, tuple[str, ...]] = {}
        self._bootstrap = bootstrap
        self._admin = admin
        self._partitions = partitions
        self._memberships: dict[str, Membership] = {}

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
        """Generation of the group when it was last stable."""
        [generation] = {membership.generation for membership in self._memberships.values()}
        return generation

    def assigned_generations(self, client: str) -> frozenset[int]:
        return self._memberships[client].assigned_generations

    def join(self, *profiles: Profile) -> None:
        """Start consumers together."""
        for profile in profiles:
            self.subscriptions[profile.client] = profile.topics
            self.consumers[profile.client] = RunningConsumer(self._bootstrap, self.name, profile)

    def join_killable(self, profile: Profile) -> None:
        """Start a consumer in a separate process, which can be killed."""
        self.subscriptions[profile.client] = profile.topics
        self.consumers[profile.client] = KillableConsumer(self._bootstrap, self.name, profile)

    def leave(self, client: str) -> None:
        """Close one consumer, which leaves the group."""
        self.running[client].leave()
        self._remove(client)

    def stop(self, client: str) -> None:
        """Close one static consumer, which remains a member of the group."""
        self.running[client].abandon()
        self._remove(client)

    def kill(self, client: str) -> None:
        """Kill the process of a consumer."""
        consumer = self.consumers[client]
        if not isinstance(consumer, KillableConsumer):
            raise TypeError(f"consumer {client!r} does not run in a separate process")
        consumer.kill()
        self._remove(client)

    def freeze(self, client: str) -> None:
        self.running[client].freeze()

    def subscribe(self, client: str, *topics: str) -> None:
        """Change a subscription and wait for the rebalance."""
        consumer = self.running[client]
        self.subscriptions[client] = topics
        before = consumer.subscribe(*topics)
        deadline = time.monotonic() + _STABLE_SECONDS
        while consumer.membership.generation <= before:
            consumer.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{client!r} is still in generation {before}")
            time.sleep(0.05)

    def close(self) -> None:
        """Stop every consumer and ignore failures."""
        for consumer in self.consumers.values():
            if isinstance(consumer, KillableConsumer):
                consumer.kill()
            else:
                with suppress(RuntimeError, TimeoutError):
                    consumer.abandon()

    def await_stable(self) -> GroupView:
        """Wait until consumers and cluster agree on a complete assignment."""
        return self.await_state("Stable")

    def await_state(self, state: str) -> GroupView:
        """Wait until the group is in ``state``; Stable includes a complete assignment."""
        return self._admin.await_group(
            self.name,
            lambda view: view.state == state and (state != "Stable" or self._is_settled(view)),
            seconds=_STABLE_SECONDS,
        )

    def _is_settled(self, view: GroupView) -> bool:
        """Return whether consumers and cluster agree on a complete assignment.

        They cannot be queried at the same time, so the consumers must report the same
        membership before and after the query of the cluster.
        """
        before, self._memberships = self._memberships, self._query_consumers()
        subscribed = {
            (topic, partition)
            for topics in self.subscriptions.values()
            for topic in topics
            for partition in range(self._partitions.get(topic, 0))
        }
        return (
            view.is_stable
            and before == self._memberships
            and len({membership.generation for membership in before.values()}) == 1
            and {client: member.assigned for client, member in view.members.items()}
            == {client: membership.assigned for client, membership in before.items()}
            and subscribed
            == {pair for membership in before.values() for pair in membership.assigned}
        )

    def _query_consumers(self) -> dict[str, Membership]:
        """Return the membership of every consumer."""
        for consumer in self.consumers.values():
            consumer.check()
        return {client: consumer.membership for client, consumer in self.consumers.items()}

    def _remove(self, client: str) -> None:
        del self.consumers[client], self.subscriptions[client]
