"""Families of groups to study, each group rebuilt from its name and seed alone."""

from experiments.families.case import IMPORTED, Case, cases_of, family_cases, imported_cases
from experiments.families.events import Event
from experiments.families.named import REMARKABLE, NamedFamily, Remarkable
from experiments.families.registry import FAMILIES, USUAL, Family
from experiments.families.seeded import Range, SeededFamily, deal

__all__ = [
    "FAMILIES",
    "IMPORTED",
    "REMARKABLE",
    "USUAL",
    "Case",
    "Event",
    "Family",
    "NamedFamily",
    "Range",
    "Remarkable",
    "SeededFamily",
    "cases_of",
    "deal",
    "family_cases",
    "imported_cases",
]
