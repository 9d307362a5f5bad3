"""Check certificates without a solver."""

from collections.abc import Iterator, Sequence

import numpy as np

from kassay.reference.model.assignment import Assignment, movement, rejoin, violations
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import Measure
from kassay.solver import evaluation
from kassay.solver.certificate import trajectory_evidence
from kassay.solver.certificate.certificate import (
    Certificate,
    Conflict,
    LevelClaim,
    Origin,
    RebalanceEvidence,
    TrajectoryCertificate,
    improves,
    level_limits,
    value_of,
)
from kassay.solver.certificate.refutation import cases_refute, prices_refute
from kassay.solver.constraints import Constraint
from kassay.solver.counting_bounds import level_bound, merged_bound
from kassay.solver.network.improving_chains import apply_chain, improving_chain
from kassay.solver.network.level_cost_network import placement_flow, priced_levels
from kassay.solver.objective import HostImbalance, Imbalance, Level
from kassay.solver.problem import Ints, Problem, build_problem, integer_text


def certificate_errors(
    group: Group, assignment: Assignment, certificate: Certificate
) -> Iterator[str]:
    """Check a certificate without a solver, and yield a message per error.

    Without errors, all claims are proven except those in `Certificate.trusted`: their bounds are
    only compared with the value. The source of the certificate need not be trusted. Raise
    InputError for a member, topic or partition that the group does not have, UsageError if a level
    or constraint does not apply to the group.
    """
    evaluation.check_constraints(group, certificate.constraints)
    levels = [claim.level for claim in certificate.claims]
    evaluation.check_levels(group, levels)
    evaluation.check_arc_costs(
        group, levels, (*evaluation.group_constraints(group), *certificate.constraints)
    )
    invalid = list(_invalid_assignments(group, assignment, certificate))
    if invalid:
        yield from invalid
        return
    yield from _wrong_claims(group, assignment, certificate)
    if certificate.conflict is not None:
        yield "the certificate has an assignment and a conflict"
    if certificate.chain:
        yield from _chain_errors(group, assignment, certificate)
    yield from _node_price_errors(group, assignment, certificate)
    is_priced = not group.has_copies and priced_levels(group, levels) is not None
    if certificate.trusted and certificate.is_optimal and is_priced:
        chain = improving_chain(group, assignment)
        if improves(group, assignment, certificate, chain):
            yield f"the bounds are wrong: transfers improve the assignment, first {chain[0]}"


def _node_price_errors(
    group: Group, assignment: Assignment, certificate: Certificate
) -> Iterator[str]:
    priced = [claim for claim in certificate.claims if claim.origin is Origin.NODE_PRICES]
    if not priced:
        if certificate.node_prices:
            yield "the certificate contains node prices, but no bound refers to them"
        return
    levels = priced_levels(group, [claim.level for claim in priced])
    # An assignment that is optimal without constraints is optimal with those that it meets.
    if levels is None or certificate.claims[: len(priced)] != tuple(priced):
        yield "node prices cannot prove these levels optimal for this group"
        return
    problem = build_problem(group)
    arcs, flow, error = placement_flow(problem, levels, problem.valid_placement(assignment))
    if error is not None:
        yield error
    if len(certificate.node_prices) != arcs.sink + 1:
        yield f"there must be {arcs.sink + 1} node prices, got {len(certificate.node_prices)}"
        return
    yield from arcs.price_errors(levels, flow, certificate.node_prices)


def conflict_errors(group: Group, certificate: Certificate) -> Iterator[str]:
    """Check the proof that constraints conflict, and yield a message per error.

    Without errors, infeasibility is proven. A conflict with an origin that is not checked is only
    compared with the constraints. Raise InputError if a constraint refers to a member, topic or
    partition that the group does not have.
    """
    evaluation.check_constraints(group, certificate.constraints)
    conflict = certificate.conflict
    if conflict is None:
        yield "the certificate has no conflict"
        return
    rules = (*evaluation.group_constraints(group), *certificate.constraints)
    for rule in conflict.constraints:
        if rule not in rules:
            yield f"the conflict has an unknown constraint: {rule}"
    if conflict.origin in {Origin.NODE_PRICES, Origin.COUNTING}:
        yield f"the conflict is not proven: a conflict cannot have the origin {conflict.origin}"
    elif set(conflict.constraints) <= set(rules):
        error = _evidence_error(build_problem(group), conflict.constraints, (), conflict)
        if error is not None:
            yield f"the conflict is not proven: {error}"


def _invalid_assignments(
    group: Group, assignment: Assignment, certificate: Certificate
) -> Iterator[str]:
    named = [("the assignment", assignment)] + [
        (f"the best known assignment on {claim.level.name}", claim.best)
        for claim in certificate.claims
        if claim.best is not None
    ]
    invalid = [
        f"{name} is not valid: {violation}"
        for name, one in named
        for violation in violations(group, one)
    ]
    yield from invalid
    if not invalid:
        problem = build_problem(group)
        rules = (*evaluation.group_constraints(group), *certificate.constraints)
        for name, one in named:
            for rule in evaluation.violated(problem, rules, problem.valid_placement(one)):
                yield f"{name} violates a constraint: {rule}"


def _wrong_claims(group: Group, assignment: Assignment, certificate: Certificate) -> Iterator[str]:
    if not certificate.claims:
        yield "the certificate has no claims"
        return
    limits = level_limits(group, assignment, certificate.claims)
    problem = build_problem(group)
    rules = (*evaluation.group_constraints(group), *certificate.constraints)
    for index, claim in enumerate(certificate.claims):
        name = claim.level.name
        value = value_of(group, assignment, claim.level)
        if value != claim.value:
            yield f"{name} is {integer_text(value)}, but the claim is {integer_text(claim.value)}"
        bound, reached = integer_text(claim.bound), integer_text(value)
        if claim.bound < 0:
            yield f"the bound {bound} on {name} is below 0"
        if claim.bound > value:
            yield f"the bound {bound} on {name} is above the value {reached}"
        if claim.origin is Origin.NODE_PRICES and claim.bound < value:
            yield f"the bound {bound} on {name} is not the value {reached} that prices prove"
        yield from _bound_errors(problem, rules, limits[:index], claim)
        if claim.best is not None:
            yield from _best_errors(group, claim, limits[:index])


def _bound_errors(
    problem: Problem,
    rules: Sequence[Constraint],
    limits: Sequence[tuple[Level, int]],
    claim: LevelClaim,
) -> Iterator[str]:
    name = f"the bound {integer_text(claim.bound)} on {claim.level.name}"
    if claim.origin is Origin.COUNTING:
        bound = level_bound(problem, claim.level, limits)
        if claim.bound > bound:
            yield f"{name} is above {integer_text(bound)}, the bound by counting"
        if claim.windows and not _is_proven_in(problem, claim):
            yield f"{name} is not proven by the loads in its windows"
        return
    error = _evidence_error(problem, rules, (*limits, (claim.level, claim.bound - 1)), claim)
    if error is not None:
        yield f"{name} is not proven: {error}"


def _is_proven_in(problem: Problem, claim: LevelClaim) -> bool:
    """Return whether the loads in the weight windows of a claim prove its bound."""
    level, windows = claim.level, claim.windows
    return (
        isinstance(level, Imbalance | HostImbalance)
        and level.measure is Measure.MAKESPAN
        and len({*windows} & {*range(problem.window_count)}) == len(windows)
        and merged_bound(problem, evaluation.load_units(problem, level), windows) >= claim.bound
    )


def _evidence_error(
    problem: Problem,
    rules: Sequence[Constraint],
    limits: Sequence[tuple[Level, int]],
    evidence: LevelClaim | Conflict,
) -> str | None:
    """Return the error in the evidence for a bound or conflict; None if there is none."""
    if evidence.origin is Origin.CASES and not cases_refute(problem, rules, limits):
        return "there are too many cases, or a case meets all limits"
    if evidence.origin is not Origin.PARTITION_PRICES:
        return None
    if evidence.prices is None:
        return "the certificate contains no partition prices"
    if not prices_refute(problem, rules, limits, evidence.prices):
        return "the partition prices do not exceed the limits"
    return None


def _best_errors(
    group: Group, claim: LevelClaim, limits: Sequence[tuple[Level, int]]
) -> Iterator[str]:
    if claim.best is None:
        return
    name = f"the best known assignment on {claim.level.name}"
    value = value_of(group, claim.best, claim.level)
    if value < claim.bound:
        text, bound = integer_text(value), integer_text(claim.bound)
        yield f"{name} has the value {text}, below the bound {bound}"
    for level, limit in limits:
        reached = value_of(group, claim.best, level)
        if reached > limit:
            yield f"{name} has {level.name} {reached}, above the limit {limit}"


def _chain_errors(group: Group, assignment: Assignment, certificate: Certificate) -> Iterator[str]:
    try:
        better = apply_chain(group, assignment, certificate.chain)
    except UsageError as error:
        yield f"the chain cannot be applied: {error}"
        return
    violation = next(violations(group, better), None)
    if violation is not None:
        yield f"the chain leads to an assignment that is not valid: {violation}"
    elif not improves(group, assignment, certificate, certificate.chain):
        yield "the chain does not improve the assignment"


def trajectory_errors(
    groups: Sequence[Group], assignments: Sequence[Assignment], certificate: TrajectoryCertificate
) -> Iterator[str]:
    """Check the certificate of a sequence of rebalances, and yield a message per error.

    Without errors, the assignments reach the level of imbalance at each rebalance and have the
    claimed moves, and no assignments with this imbalance have moves below the bound. If weights
    or speeds differ, `TrajectoryCertificate.trusted` lists the rebalances whose minimum is not
    proven.
    """
    if not len(groups) == len(assignments) == len(certificate.rebalances):
        yield (
            f"groups, assignments and rebalances in the certificate must be equally many, got "
            f"{len(groups)}, {len(assignments)} and {len(certificate.rebalances)}"
        )
        return
    try:
        evidence = [one.loads for one in certificate.rebalances]
        stream = trajectory_evidence.build_stream(groups, certificate.levels, evidence)
        prices = _prices(stream, certificate)
        bound = trajectory_evidence.price_bound(stream, prices, certificate.scale)
    except (InputError, UsageError) as error:
        yield f"the evidence is wrong: {error}"
        return
    if certificate.bound > max(bound, 0):
        yield f"the prices prove the bound {bound}, but the claim is {certificate.bound}"
    if certificate.value < certificate.bound:
        yield f"the value {certificate.value} is less than the bound {certificate.bound}"
    yield from _assignment_errors(stream, groups, assignments, certificate)


def _assignment_errors(
    stream: trajectory_evidence.Stream,
    groups: Sequence[Group],
    assignments: Sequence[Assignment],
    certificate: TrajectoryCertificate,
) -> Iterator[str]:
    moves: list[int] = []
    for number, assignment in enumerate(assignments):
        group = groups[number]
        if number:
            group = rejoin(group, assignments[number - 1])
        invalid = [f"assignment {number}: {one}" for one in violations(group, assignment)]
        if invalid:
            yield from invalid
            return
        moves.append(movement(group, assignment))
        rebalance = stream.rebalances[number]
        placement = rebalance.problem.valid_placement(assignment)
        loads = np.zeros(len(stream.members), dtype=np.int64)
        weight = rebalance.problem.weight if stream.is_weighted else np.ones_like(placement)
        np.add.at(loads, rebalance.members[placement], weight)
        if not rebalance.permits(loads):
            yield f"assignment {number}: the loads are above the limit of the imbalance level"
        evidence = certificate.rebalances[number]
        for error in _least_errors(evidence, group, assignment, rebalance.least_makespan):
            yield f"rebalance {number}: {error}"
    if sum(moves) != certificate.value:
        yield f"the assignments have {sum(moves)} moves, but the claim is {certificate.value}"


def _least_errors(
    evidence: RebalanceEvidence, group: Group, assignment: Assignment, least_makespan: int | None
) -> Iterator[str]:
    best = evidence.best or assignment
    if least_makespan is not None:
        makespan = max(map(len, best.values()), default=0)
        if not _is_permitted(group, best) or makespan > least_makespan:
            yield f"no valid assignment with minimum makespan {least_makespan}, got {makespan}"
    elif evidence.least is not None:
        levels = [claim.level for claim in evidence.least.claims]
        if levels != [Imbalance(Measure.MAKESPAN)] or evidence.least.constraints:
            yield "the certificate of the minimum makespan is about other levels or constraints"
        else:
            free = rejoin(group, Assignment({}))
            yield from certificate_errors(free, best, evidence.least)


def _is_permitted(group: Group, assignment: Assignment) -> bool:
    if any(violations(group, assignment)):
        return False
    problem = build_problem(group)
    placement = problem.valid_placement(assignment)
    return not any(evaluation.violated(problem, evaluation.group_constraints(group), placement))


def _prices(stream: trajectory_evidence.Stream, certificate: TrajectoryCertificate) -> Ints:
    prices = np.zeros((len(stream.rebalances), len(stream.members)), dtype=np.int64)
    for number, one in enumerate(certificate.rebalances):
        for name, price in one.prices.items():
            if name not in stream.members:
                raise InputError(f"rebalance {number}: the prices name the unknown member {name!r}")
            if abs(price) > (limit := trajectory_evidence.greatest_price(stream)):
                raise InputError(
                    f"rebalance {number}: prices must be from -{limit} to {limit}, got {price}"
                )
            prices[number, stream.members[name]] = price
    return prices
