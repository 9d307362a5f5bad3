"""The groups that are captured from a real cluster: who joins, leaves or stands still.

A step is taken when the step before it has settled, so each costs the group one
rebalance. Names of clients sort as they are written: the assignors of the ``classic``
protocol break ties by them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.conformance.consumers import Profile

TOPICS = {
    "audit": 3,
    "ledger": 10,
    "mail_out": 5,
    "pricing.updates": 6,
    "shop.carts": 9,
    "shop.orders": 12,
    "shop.payments": 8,
    "stock-levels": 7,
    "telemetry": 96,
    "web.clicks": 24,
    "web.views": 18,
    "x.one": 1,
    "y.one": 1,
    "y.two": 2,
    "z.one": 1,
}
"""Topics of the captured cluster and their partition counts."""


@dataclass(frozen=True, slots=True)
class Join:
    """Consumers start together."""

    profiles: tuple[Profile, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """One consumer closes."""

    client: str


@dataclass(frozen=True, slots=True)
class Freeze:
    """One consumer stops polling while its heartbeats go on."""

    client: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """One consumer changes its subscription."""

    client: str
    topics: tuple[str, ...]


Step = Join | Leave | Freeze | Subscribe


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One captured group.

    Parameters
    ----------
    name
        Group id.
    about
        What it is there to show, in a sentence.
    steps
        What happens, in order.
    ends
        State it is captured in.
    uncommitted
        Every how manieth partition has no committed offset; 0 for none.
    """

    name: str
    about: str
    steps: tuple[Step, ...]
    ends: str = "Stable"
    uncommitted: int = 0

    @property
    def assignor(self) -> str:
        """Assignor of those who were there first."""
        first = self.steps[0]
        if not isinstance(first, Join):
            raise TypeError(f"scenario {self.name!r} does not begin with a join")
        return first.profiles[0].assignor

    @property
    def directory(self) -> str:
        """Where its captures lie: the group id, blanks and punctuation replaced."""
        return re.sub(r"[^\w.-]+", "-", self.name)


def _join(assignor: str, **subscriptions: str) -> Join:
    """Consumers by client id (``_`` for ``-``), topics separated by blanks."""
    return Join(
        tuple(
            Profile(
                client=client.replace("_", "-"), topics=tuple(topics.split()), assignor=assignor
            )
            for client, topics in subscriptions.items()
        )
    )


def _alike(assignor: str, prefix: str, count: int, topics: str) -> Join:
    """So many consumers with one subscription."""
    return _join(assignor, **{f"{prefix}_{number:02}": topics for number in range(count)})


def _static(assignor: str, client: str, topics: str) -> Profile:
    """A consumer with a ``group.instance.id`` of its own."""
    return Profile(
        client=client,
        topics=tuple(topics.split()),
        assignor=assignor,
        instance=f"{client}.rack-7.example",
    )


_ANALYTICS = _join(
    "sticky",
    an_00="shop.payments web.clicks",
    an_01="audit mail_out web.clicks web.views",
    an_02="shop.orders",
    an_03="shop.orders stock-levels web.clicks web.views",
    an_04="shop.carts shop.orders stock-levels",
    an_05="stock-levels web.views",
    an_06="mail_out stock-levels",
    an_07="shop.carts shop.orders",
    an_08="mail_out shop.carts shop.payments web.views",
    an_09="audit shop.carts web.clicks",
    an_10="shop.carts shop.payments stock-levels",
    an_11="audit shop.carts",
)
_RECOMMENDER = _join(
    "cooperative-sticky",
    rec_00="mail_out shop.payments web.clicks",
    rec_01="audit mail_out web.views",
    rec_02="shop.orders stock-levels web.views",
    rec_03="audit web.clicks web.views",
    rec_04="mail_out shop.payments web.clicks web.views",
    rec_05="shop.carts stock-levels",
    rec_06="audit stock-levels web.clicks",
    rec_07="stock-levels web.clicks",
    rec_08="shop.orders",
    rec_09="shop.orders shop.payments stock-levels web.views",
    rec_10="shop.carts shop.payments",
    rec_11="shop.payments",
)

SCENARIOS = (
    Scenario(
        name="checkout-range",
        about="Range over four topics: each adds its own remainder to the same members.",
        steps=(_alike("range", "pay", 5, "shop.carts shop.orders shop.payments stock-levels"),),
    ),
    Scenario(
        name="billing-roundrobin",
        about="Round robin over mixed subscriptions piles up on whoever subscribes to all.",
        steps=(
            _join(
                "roundrobin",
                bill_a="audit",
                bill_b="audit mail_out",
                bill_c="audit mail_out shop.orders",
                bill_d="audit mail_out shop.payments",
            ),
        ),
        uncommitted=4,
    ),
    Scenario(
        name="fulfilment-sticky",
        about="Sticky with equal subscriptions, after one member left and another joined.",
        steps=(
            _alike("sticky", "ful", 5, "shop.orders shop.payments stock-levels"),
            Leave("ful-02"),
            _join("sticky", ful_09="shop.orders shop.payments stock-levels"),
        ),
    ),
    Scenario(
        name="analytics-sticky",
        about="Sticky over eight topics and twelve mixed subscriptions, after a leave and a join.",
        steps=(_ANALYTICS, Leave("an-01"), _join("sticky", an_12="audit mail_out web.clicks")),
    ),
    Scenario(
        name="search-sticky",
        about="Three new members, three partitions: Sticky gives 2/1/0 where 1/1/1 is possible.",
        steps=(_join("sticky", c0="y.two", c1="x.one y.two", c2="x.one"),),
    ),
    Scenario(
        name="returns-sticky",
        about="A newcomer stays idle: Sticky keeps 2/1/0 where two moves give 1/1/1.",
        steps=(
            _join("sticky", c1="x.one y.one z.one", c2="x.one y.one z.one"),
            _join("sticky", c3="y.one"),
        ),
    ),
    Scenario(
        name="recommender-cooperative",
        about="Cooperative sticky over twelve mixed subscriptions, after one member left.",
        steps=(_RECOMMENDER, Leave("rec-09")),
    ),
    Scenario(
        name="pricing-cooperative",
        about="Cooperative sticky with equal subscriptions that all grew by a topic, one by one.",
        steps=(
            _alike("cooperative-sticky", "price", 3, "pricing.updates"),
            Subscribe("price-00", ("pricing.updates", "stock-levels")),
            Subscribe("price-01", ("pricing.updates", "stock-levels")),
            Subscribe("price-02", ("pricing.updates", "stock-levels")),
        ),
    ),
    Scenario(
        name="events-uniform",
        about="The consumer protocol's uniform assignor, equal subscriptions, a leave and a join.",
        steps=(
            _alike("uniform", "ev", 6, "web.clicks web.views"),
            Leave("ev-03"),
            _join("uniform", ev_06="web.clicks web.views"),
        ),
    ),
    Scenario(
        name="events-uniform-mixed",
        about="The uniform assignor with differing subscriptions, after a member joined.",
        steps=(
            _join(
                "uniform",
                mix_0="web.clicks",
                mix_1="web.clicks web.views",
                mix_2="web.views shop.carts",
                mix_3="shop.carts shop.orders web.clicks",
            ),
            _join("uniform", mix_4="shop.orders web.views"),
        ),
        uncommitted=5,
    ),
    Scenario(
        name="events-server-range",
        about="The consumer protocol's range assignor.",
        steps=(_alike("server-range", "srv", 4, "pricing.updates shop.carts stock-levels"),),
    ),
    Scenario(
        name="telemetry-uniform",
        about="Sixteen members on one topic of ninety-six partitions, two of them new.",
        steps=(_alike("uniform", "tel", 14, "telemetry"), _alike("uniform", "new", 2, "telemetry")),
    ),
    Scenario(
        name="ledger-static",
        about="Three static members and a dynamic one under range.",
        steps=(
            Join(tuple(_static("range", f"ledger-{n}", "ledger audit") for n in "abc")),
            _join("range", walk_in="ledger audit"),
        ),
    ),
    Scenario(
        name="ledger-consumer-static",
        about="Static and dynamic members under the consumer protocol.",
        steps=(
            Join(tuple(_static("uniform", f"post-{n}", "ledger") for n in "ab")),
            _join("uniform", walk_in="ledger"),
        ),
    ),
    Scenario(
        name="audit-idle",
        about="Idle members: five for three partitions, and one whose topic does not exist.",
        steps=(
            _alike("roundrobin", "aud", 5, "audit"),
            _join("roundrobin", lost="no.such.topic"),
        ),
    ),
    Scenario(
        name="nightly-empty",
        about="Everybody has left; the committed offsets remain.",
        steps=(
            _alike("range", "night", 2, "mail_out pricing.updates"),
            Leave("night-00"),
            Leave("night-01"),
        ),
        ends="Empty",
    ),
    Scenario(
        name="stuck-reconciling",
        about="A member that does not poll keeps what it shall give up: current is not target.",
        steps=(
            _alike("uniform", "slow", 1, "pricing.updates"),
            Freeze("slow-00"),
            _join("uniform", eager="pricing.updates"),
        ),
        ends="Reconciling",
    ),
    Scenario(
        name="upgrade-half-way",
        about="A rolling upgrade: a classic consumer in a group of the consumer protocol.",
        steps=(
            _alike("uniform", "modern", 2, "shop.carts"),
            _join("cooperative-sticky", old_timer="shop.carts"),
        ),
    ),
    Scenario(
        name="night shift, team 2",
        about="Blanks and a comma in the group id, a blank in the client ids: Kafka allows them.",
        steps=(
            Join(
                tuple(
                    Profile(client=f"loader {n}", topics=("mail_out", "audit"), assignor="range")
                    for n in range(2)
                )
            ),
        ),
    ),
    # Last: the broker drops a newcomer that has waited for five minutes.
    Scenario(
        name="stuck-rebalancing",
        about="A rebalance that waits for a member which does not poll.",
        steps=(
            _alike("range", "slow", 1, "mail_out"),
            Freeze("slow-00"),
            _join("range", eager="mail_out"),
        ),
        ends="PreparingRebalance",
    ),
)
