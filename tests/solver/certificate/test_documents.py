"""Certificates as JSON documents: round trips and format errors."""

import json
import pickle

import pytest
from hypothesis import given

import kassay
from kassay import InputError
from kassay.solver import objective
from kassay.solver.certificate.certificate import Conflict, LevelClaim, Origin
from kassay.solver.certificate.documents import certificate_document, parse_certificate
from kassay.solver.certificate.refutation import PartitionPrices
from tests.solver.certified_group import GROUP, LOPSIDED, PROOF
from tests.stored_cases import stored_cases
from tests.strategies import groups


def travelled(certificate):
    return parse_certificate(json.loads(json.dumps(certificate_document(certificate))))


@given(groups())
def test_certificates_are_equal_after_json_and_pickle(group):
    certificate = kassay.solve(group).certificate
    assert travelled(certificate) == certificate
    assert pickle.loads(pickle.dumps(certificate)) == certificate


def test_all_levels_and_constraints_are_equal_after_json():
    tolerance = kassay.Tolerance(absolute=3, relative=0.01)
    levels = (
        *(kassay.Imbalance(measure) for measure in kassay.Measure),
        kassay.Imbalance(kassay.Measure.MAKESPAN, tolerance),
        kassay.Movement(),
        kassay.Movement("weight", tolerance),
        kassay.Movement({("t", 0): 5, ("t", 1): 0}, other=2),
        kassay.CrossRack(tolerance),
        kassay.CrossRack(kassay.Tolerance(up_to=4)),
        kassay.TopicSpread(),
        kassay.MembersUsed(),
        *(objective.HostImbalance(measure) for measure in kassay.Measure),
        objective.HostImbalance(kassay.Measure.MAKESPAN, tolerance),
        objective.Colocation([["t", "u"], ["v"]], tolerance),
    )
    constraints = (
        kassay.Capacity(4),
        kassay.Capacity(5, "a"),
        kassay.MaxPartitions(6, "b"),
        kassay.MaxMoves(0),
        kassay.Pinned("t", 1, "a"),
        kassay.Forbidden("a", "t"),
        kassay.Forbidden("a", "t", 2),
        kassay.Colocated(("t", "u")),
        kassay.Separated((("t", 0), ("u", 1))),
    )
    prices = PartitionPrices({"t": (3, 0, -1)}, max_moves=2, levels=(1, 0))
    certificate = kassay.Certificate(
        claims=tuple(
            LevelClaim(level, index + 2, index, origin, LOPSIDED, prices)
            for index, (level, origin) in enumerate(zip(levels, list(Origin) * 3, strict=False))
        ),
        chain=kassay.certify(GROUP, LOPSIDED).chain,
        constraints=constraints,
        conflict=Conflict(constraints[:2], Origin.PARTITION_PRICES, prices),
    )
    assert travelled(certificate) == certificate


@pytest.mark.parametrize(("change", "message"), stored_cases("invalid_certificates"))
def test_a_certificate_in_a_wrong_format_is_rejected_with_its_location(change, message):
    document = certificate_document(PROOF) | change
    with pytest.raises(InputError, match=message):
        parse_certificate(document)
