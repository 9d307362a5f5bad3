"""Registered kinds of groups."""

from kassay.experiments.kinds.registry import KINDS
from kassay.reference.assignors import KIND_PORTS
from kassay.reference.documents.kind_documents import Kind


def test_every_kind_except_consumer_groups_is_registered():
    assert {*KINDS, Kind.CONSUMER} == {*Kind}
    assert {port.kind for port in KIND_PORTS.values()} <= {*KINDS}


def test_each_kind_forecasts_events_or_states_why_not():
    for kind in KINDS.values():
        assert (kind.forecast is None) is (kind.no_forecast is not None)
        assert (kind.forecast is None) is (not kind.settings)
