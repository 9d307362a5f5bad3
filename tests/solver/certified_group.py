"""A small certified rebalance for tests that change it."""

from kassay import Assignment, Group, Member, Topic, certify, imbalance, movement
from kassay.solver.certificate.check import certificate_errors

GROUP = Group(
    topics=(Topic(name="t", partitions=3),),
    members=(
        Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1), ("t", 2)]),
        Member(id="b", subscription=("t",)),
    ),
)
BEST = Assignment({"a": [("t", 0), ("t", 1)], "b": [("t", 2)]})
LOPSIDED = Assignment({"a": [("t", n) for n in range(3)]})
PROOF = certify(GROUP, BEST)


def complaints(certificate, assignment=BEST):
    return list(certificate_errors(GROUP, assignment, certificate))


def quality(group, assignment):
    return imbalance(group, assignment), movement(group, assignment)
