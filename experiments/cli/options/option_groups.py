"""Convert groups of options, which are dataclasses, to the parameters of a command."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import EnumType
from functools import wraps
from pathlib import Path
from typing import Any, get_args

from typer.models import OptionInfo

_PLACEHOLDERS = {int: "N", float: "SECONDS", Path: "FILE", str: "NAME"}
"""Default placeholders for option values in help texts, by Python type."""


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each dataclass parameter of a command by one parameter per field.

    The default of a dataclass parameter is an instance with the defaults of all options.
    """
    parameters = inspect.signature(command).parameters.values()
    groups = [one for one in parameters if is_dataclass(one.annotation)]

    @wraps(command)
    def run(**values: Any) -> None:
        for group in groups:
            options = {one.name: values.pop(one.name) for one in fields(group.annotation)}
            values[group.name] = group.annotation(**options)
        command(**values)

    expanded = [option for one in parameters for option in _options_of(one)]
    for option in expanded:
        _set_placeholder(option)
    run.__signature__ = inspect.Signature(expanded)  # type: ignore[attr-defined]
    return run


def _options_of(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    if not is_dataclass(parameter.annotation):
        return [parameter]
    return [
        parameter.replace(
            name=one.name, annotation=one.type, default=getattr(parameter.default, one.name)
        )
        for one in fields(parameter.annotation)
    ]


def _set_placeholder(parameter: inspect.Parameter) -> None:
    annotation, *metadata = get_args(parameter.annotation) or (None,)
    types = {annotation, *get_args(annotation)}
    types |= {element for type_ in types for element in get_args(type_)}
    for option in metadata:
        if isinstance(option, OptionInfo) and option.metavar is None:
            choices = next((t for t in types if isinstance(t, EnumType)), None)
            names = [name for type_, name in _PLACEHOLDERS.items() if type_ in types]
            option.metavar = "|".join(choices) if choices else next(iter(names), None)
