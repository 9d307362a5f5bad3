"""Compose a command from groups of options. A group is a dataclass with one option per field."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

import typer
from typer.core import TyperCommand

_PLACEHOLDERS = {"int": "N", "float": "SECONDS", "path": "FILE", "str": "NAME"}
"""Default placeholders for option values in help texts, by the first word of the type."""


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Options of one dataclass, and the function that creates the dataclass."""

    params: list[Any]
    create: Callable[..., object]

    @classmethod
    def of(cls, options: Any, defaults: object | None = None) -> "OptionGroup":
        """Read the options from the constructor of a dataclass.

        ``defaults`` is an instance with other defaults than those of the constructor.
        """
        application = typer.Typer(add_completion=False)
        application.command()(options)
        command: Any = typer.main.get_command(application)
        for param in command.params:
            if defaults is not None:
                param.default = getattr(defaults, param.name)
            if param.metavar is None and not getattr(param, "is_flag", False):
                choices = getattr(param.type, "choices", ())
                param.metavar = "|".join(choices) or _PLACEHOLDERS[param.type.name.split()[0]]
        return cls(command.params, command.callback)

    def values(self, given: Mapping[str, object]) -> object:
        """Create the dataclass from the values of all options of a command."""
        return self.create(**{param.name: given[param.name] for param in self.params})


class ComposedCommand(TyperCommand):
    """Command with the options of all dataclasses that are parameters of a function.

    The default of a parameter is an instance with defaults for this command. A parameter of type
    ``typer.Context`` receives the context of the command.
    """

    def __init__(self, name: str, run: Callable[..., None]) -> None:
        parameters = inspect.signature(run).parameters.values()
        self.groups = {
            one.name: OptionGroup.of(
                one.annotation, None if one.default is one.empty else one.default
            )
            for one in parameters
            if is_dataclass(one.annotation)
        }
        self.contexts = [one.name for one in parameters if one.annotation is typer.Context]
        self.run = run
        super().__init__(
            name,
            params=[param for group in self.groups.values() for param in group.params],
            help=inspect.getdoc(run),
            rich_markup_mode="markdown",
        )

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words that follow the command name in the usage line."""
        params: list[Any] = self.get_params(ctx)
        arguments = [one for one in params if one.param_type_name == "argument"]
        names = [one.metavar if one.required else f"[{one.metavar}]" for one in arguments]
        return ["[OPTIONS]", *names]

    def invoke(self, ctx: Any) -> None:
        """Create the dataclasses from the values of the options, and run the function."""
        groups = {name: group.values(ctx.params) for name, group in self.groups.items()}
        self.run(**groups, **dict.fromkeys(self.contexts, ctx))
