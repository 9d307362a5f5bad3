"""Edited solution documents are never reported as the optimum, unless brute force agrees.

``make forgeries`` runs 100,000 edited documents; EDITED_DOCUMENTS sets the number.
"""

import json
import os
import random
from collections import Counter
from dataclasses import replace

import pytest

from kassay import Certificate, InputError, solve
from kassay.experiments.cli.commands.solve import solution_record
from kassay.experiments.cli.commands.verify import Question, check_solution, parse_solution
from kassay.reference.documents.files import LocatedDocument
from kassay.solver.certificate.certificate import Proof
from kassay.solver.certificate.check import certificate_errors, conflict_errors
from kassay.solver.certificate.documents import parse_certificate
from tests.forgeries.edits import EDITS
from tests.forgeries.requests import Request, random_request

DOCUMENTS = int(os.environ.get("EDITED_DOCUMENTS", "1500"))
_EDITS_PER_SOLUTION = 25
_SHARES = 4  # of the test, so that a failure names a small range of seeds


def checked(request, document):
    """Return the record of ``kassay verify``, None if it rejects the document as bad input."""
    solution = parse_solution(LocatedDocument("file:1", document))
    try:
        if solution.error is not None:
            raise solution.error
        return check_solution(request.question, solution)
    except InputError:
        return None


def placed(document):
    lists = document["assignment"]
    lists = lists if isinstance(lists, dict) else {}
    return {(topic, number): member for member, tps in lists.items() for topic, number in tps}


def expected(request, document, record):
    """Return whether brute force agrees with what a record proves."""
    if record.get("optimal") is True:
        return request.is_optimal(placed(document))
    if record.get("infeasible") is True:
        return not request.allowed
    if record.get("optimal") is False and "improvement" in record:
        return not request.is_optimal(placed(document))
    return True


@pytest.mark.parametrize("share", range(_SHARES))
def test_no_edited_document_is_reported_as_the_optimum_unless_it_is(share):
    outcomes = Counter()
    for index in range(share, DOCUMENTS // _EDITS_PER_SOLUTION, _SHARES):
        rng = random.Random(index)
        request = random_request(rng)
        question = request.question
        solution = solve(question.group, levels=question.levels, constraints=question.constraints)
        written = json.dumps(solution_record(question.group, solution, certified=True))
        record = checked(request, json.loads(written))
        assert record is not None, index
        assert "errors" not in record, (index, record["errors"])
        assert record["optimal"] is True if solution.assignment else record["infeasible"], index
        assert expected(request, json.loads(written), record), index
        for _ in range(_EDITS_PER_SOLUTION):
            document = json.loads(written)
            edited = replace(request)
            for _ in range(rng.choice((1, 1, 2, 3))):
                try:
                    rng.choice(EDITS)(rng, edited, document)
                except (KeyError, IndexError, TypeError, AttributeError, ValueError):
                    continue  # an earlier edit removed what this one changes
            record = checked(edited, document)
            outcomes["rejected" if record is None else str(record.get("optimal"))] += 1
            if record is not None:
                assert expected(edited, document, record), (index, document, record)
            outcomes["proven on its own objective"] += check_stated_objective(edited, document)
    assert outcomes["True"] < outcomes["rejected"] + outcomes["None"]


def check_stated_objective(request, document):
    """Check an edited certificate against its own objective; return whether it is proven."""
    try:
        certificate = parse_certificate(document.get("certificate"))
        solution = parse_solution(LocatedDocument("file:1", document))
    except InputError:
        return False
    group = request.question.group
    levels = tuple(claim.level for claim in certificate.claims)
    stated = Request(Question(group, levels, certificate.constraints))
    if not is_proven(group, solution.assignment, certificate):
        return False
    if solution.assignment is None:
        assert not stated.allowed, document
    else:
        assert stated.is_optimal(placed(document)), document
    return True


def is_proven(group, assignment, certificate: Certificate) -> bool:
    """Return whether a certificate has no error and proves its claims or its conflict."""
    try:
        if certificate.proof is not Proof.CERTIFICATE:
            return False
        if assignment is None:
            return not any(conflict_errors(group, certificate))
        return certificate.is_optimal and not any(
            certificate_errors(group, assignment, certificate)
        )
    except InputError:
        return False
