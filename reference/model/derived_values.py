"""What follows from a group, or from a group and an assignment, worked out once.

Groups and assignments never change, and the same few facts about them are asked for again
and again: who owns what, who consumes what, what everybody got. The answers are kept with
the object they are about and are dropped with it; they are no part of its value.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

Subject = TypeVar("Subject", bound="DerivedValues")
Context = TypeVar("Context")
Fact = TypeVar("Fact")


class DerivedValues:
    """An immutable object that remembers what was derived from it."""

    __slots__ = ("_context", "_facts")

    _context: object
    _facts: dict[Any, Any]


def cached(derive: Callable[[Subject], Fact], subject: Subject) -> Fact:
    """Return what a function makes of an object, calling it the first time only.

    Parameters
    ----------
    derive
        A pure function, whose result nobody alters.
    subject
        What it is about.

    Examples
    --------
    >>> seen = DerivedValues()
    >>> cached(id, seen) == cached(id, seen) == id(seen)
    True
    """
    facts = _facts_of(subject, None)
    if derive not in facts:
        facts[derive] = derive(subject)
    return cast("Fact", facts[derive])


def cached_for(
    derive: Callable[[Context, Subject], Fact], context: Context, subject: Subject
) -> Fact:
    """Do as `cached` for a function of two objects; the second remembers.

    It remembers for one context, the last: an assignment is judged on one group.
    """
    facts = _facts_of(subject, context)
    if derive not in facts:
        facts[derive] = derive(context, subject)
    return cast("Fact", facts[derive])


def _facts_of(subject: DerivedValues, context: object) -> dict[Any, Any]:
    """Return the facts known in a context, none of any other."""
    try:
        if subject._context is context:  # noqa: SLF001 - its own slots
            return subject._facts  # noqa: SLF001
    except AttributeError:
        pass
    facts: dict[Any, Any] = {}
    # Frozen classes refuse plain assignment.
    object.__setattr__(subject, "_context", context)
    object.__setattr__(subject, "_facts", facts)
    return facts
