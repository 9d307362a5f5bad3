"""Register all families by name. Families generate the cases of studies."""

import json
from dataclasses import is_dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any, get_args, get_type_hints

from kassay.experiments.study.families import (
    event_streams,
    finite_families,
    random_documents,
    random_groups,
)
from kassay.experiments.study.families.base_family import Family, Range, SeededCases
from kassay.experiments.study.families.random_documents import DocumentFamily

_MODULES = (random_groups, random_documents, finite_families, event_streams)
_GENERATORS = {
    name: kind for module in _MODULES for name, kind in vars(module).items() if is_dataclass(kind)
}
_TEXT = files(__package__).joinpath("families.json").read_text(encoding="utf-8")
_SECTIONS: dict[str, dict[str, dict[str, Any]]] = json.loads(_TEXT)


def _build(kind: Any, parameters: dict[str, Any]) -> Any:
    hints = get_type_hints(kind)
    return kind(**{name: _value(hints[name], value) for name, value in parameters.items()})


def _value(hint: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return _build(hint, value)
    if isinstance(value, list):
        return Range(*value) if hint is Range else tuple(value)
    kinds = [kind for kind in (hint, *get_args(hint)) if isinstance(kind, type)]
    return next((kind(value) for kind in kinds if issubclass(kind, StrEnum)), value)


def _family(name: str, *, generator: str, **parameters: Any) -> SeededCases:
    family: SeededCases = _build(_GENERATORS[generator], {"name": name, **parameters})
    return family


STUDIED: dict[str, SeededCases] = {
    name: _family(name, **parameters)
    for section in _SECTIONS.values()
    for name, parameters in section.items()
}
"""All families that a study can have, by name."""

FAMILIES = {name: family for name, family in STUDIED.items() if isinstance(family, Family)}
"""All families of consumer groups by name."""

DOCUMENT_FAMILIES = {
    name: family for name, family in STUDIED.items() if isinstance(family, DocumentFamily)
}
"""All families of share groups, Streams applications and Connect clusters by name."""

USUAL = tuple(_SECTIONS["usual"])
"""Names of the families in a study without --family and without a configuration."""
