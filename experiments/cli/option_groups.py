"""Command-line options as fields of dataclasses, commands with such options, and checks.

A failed check is a usage error.
"""

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import MISSING, Field, field, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand
from typer.main import get_click_param
from typer.models import ParameterInfo, ParamMeta

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


REQUIRED: Any = MISSING
"""Default of an option that must be given."""
_PLACEHOLDERS = {"int": "N", "float": "SECONDS", "path": "FILE", "str": "NAME"}
"""Default placeholders for option values in help texts, by the first word of the type."""


def option(default: Any, text: str, *names: str, **settings: Any) -> Any:
    """Declare an option as a field of a group, with the settings of ``typer.Option``.

    ``text`` is the help. Without ``names``, the name of the option is the name of the field.
    """
    return _declare(default, typer.Option(..., *names, help=text, **settings))


def argument(default: Any, text: str, **settings: Any) -> Any:
    """Declare an argument as a field of a group, with the settings of ``typer.Argument``."""
    return _declare(default, typer.Argument(..., help=text, **settings))


def _declare(default: Any, declaration: ParameterInfo) -> Any:
    return field(default=default, metadata={"declaration": declaration})


def _param(
    one: "Field[Any]", default: object, panel: str | None
) -> tuple[Any, Callable[[Any], object]]:
    """Convert a field to a parameter of Click, and a function that converts its value."""
    declaration = copy(one.metadata["declaration"])
    declaration.default = ... if default is REQUIRED else default
    declaration.rich_help_panel = panel
    if one.type is bool:
        declaration.param_decls = (f"--{one.name.replace('_', '-')}",)
    converted = ParamMeta(name=one.name, default=declaration, annotation=one.type)
    param: Any
    param, convert = get_click_param(converted)
    if param.metavar is None and one.type is not bool:
        choices = getattr(param.type, "choices", ())
        param.metavar = "|".join(choices) or _PLACEHOLDERS[param.type.name.split()[0]]
    return param, convert or (lambda value: value)


class ComposedCommand(TyperCommand):
    """Command with the options of all dataclasses that are parameters of a function.

    The default of a parameter is an instance with defaults for this command. A class variable
    ``panel`` of a dataclass is the heading of its options in the help. A parameter of type
    ``typer.Context`` receives the context of the command.
    """

    def __init__(self, name: str, run: Callable[..., None]) -> None:
        self.run = run
        self.groups: dict[str, tuple[Any, dict[str, Callable[[Any], object]]]] = {}
        self.contexts: list[str] = []
        params = []
        for parameter in inspect.signature(run).parameters.values():
            group = parameter.annotation
            if group is typer.Context:
                self.contexts.append(parameter.name)
                continue
            defaults = {one.name: one.default for one in fields(group)}
            if parameter.default is not parameter.empty:
                defaults = {name: getattr(parameter.default, name) for name in defaults}
            converters = {}
            for one in fields(group):
                param, convert = _param(one, defaults[one.name], getattr(group, "panel", None))
                params.append(param)
                converters[one.name] = convert
            self.groups[parameter.name] = group, converters
        super().__init__(name, params=params, help=inspect.getdoc(run), rich_markup_mode="markdown")

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words that follow the command name in the usage line."""
        params: list[Any] = self.get_params(ctx)
        arguments = [one for one in params if one.param_type_name == "argument"]
        names = [one.metavar if one.required else f"[{one.metavar}]" for one in arguments]
        return ["[OPTIONS]", *names]

    def invoke(self, ctx: Any) -> None:
        """Create the dataclasses from the values of the options, and run the function."""
        groups = {
            name: group(**{key: convert(ctx.params[key]) for key, convert in converters.items()})
            for name, (group, converters) in self.groups.items()
        }
        self.run(**groups, **dict.fromkeys(self.contexts, ctx))


def known_names(
    kind: str, choices: Sequence[str], default: Sequence[str] = ()
) -> Callable[[list[str] | None], list[str]]:
    """Return a Typer callback that removes duplicate names and rejects unknown names."""

    def check(names: list[str] | None) -> list[str]:
        for name in names or ():
            check_name(kind, choices, name)
        return list(dict.fromkeys(names or default))

    return check


def check_name(kind: str, choices: Sequence[str], name: str) -> None:
    """Raise a usage error if the name is not one of the choices."""
    if name not in choices:
        raise typer.BadParameter(f"unknown {kind} {name!r}; choose from {', '.join(choices)}")


def parse_share(text: str) -> Fraction:
    """Parse a share, such as 0.05, 1/20 or 5%. Any other text is a usage error.

    Examples
    --------
    >>> parse_share("2%"), parse_share("0.02")
    (Fraction(1, 50), Fraction(1, 50))
    """
    number = text.strip()
    try:
        share = Fraction(number.removesuffix("%").rstrip()) / (100 if number.endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if share < 0:
        raise typer.BadParameter(f"a share must be at least 0, such as 0.05 or 5%, got {text!r}")
    return share


def check_directory(path: Path | None) -> Path | None:
    """Raise a usage error if an output directory is a file or lies in one."""
    for part in () if path is None else (path, *path.parents):
        if part.exists() and not part.is_dir():
            raise typer.BadParameter(f"must be a directory, but {part} is a file")
    return path


def given_options(*groups: "DataclassInstance", without: Sequence[str] = ()) -> list[str]:
    """Return the options with other values than their defaults, as arguments of a command.

    ``without`` are names of options to leave out.
    """
    arguments = []
    for group in groups:
        for option in fields(group):
            value = getattr(group, option.name)
            name = "--" + option.name.replace("_", "-")
            if value == option.default or name in without:
                continue
            if value is True:
                arguments.append(name)
            else:
                for one in value if isinstance(value, list) else [value]:
                    arguments += [name, str(one)]
    return arguments
