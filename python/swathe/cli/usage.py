"""Layout of `--help`, and error messages for invalid options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_origin

from typer._click.exceptions import UsageError
from typer._coercion import RuntimeParam, build_runtime_param
from typer._param_types import coerce_cli_path
from typer.core import TyperArgument, TyperGroup, TyperOption

from swathe.cli.output import print_error, wants_json
from swathe.core.value_errors import fault_text

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

CUTTING, ARCHIVE, PORTAL, MEASURING = "Cutting", "Archive", "Portal", "Measuring"
OTHERS = "Commands"
UNITS = {
    "s": "SECONDS",
    "ms": "MILLISECONDS",
    "h": "HOURS",
    "mb": "MB",
    "gb": "GB",
    "deg": "DEGREES",
    "percent": "PERCENT",
}
"""Placeholder for the value of an option, by the ending of the option's name."""
TYPES: dict[Any, str] = {int: "N", float: "X", Path: "FILE", list[int]: "N", list[float]: "X"}


class Argument(TyperArgument):
    """An argument that `--help` shows by its name alone."""

    def display_type_rich(self, ctx: Context) -> str | None:  # noqa: ARG002 - the signature is Typer's
        """Return None, so that `--help` shows only the name."""
        return None

    def get_usage_pieces(self, ctx: Context) -> list[str]:  # noqa: ARG002 - the signature is Typer's
        """Return the name as in manual pages: in brackets if it may be missing."""
        name = f"{self.metavar}{'...' if self.nargs != 1 else ''}"
        return [name if self.required else f"[{name}]"]


class PlainValues(RuntimeParam):
    """Values that are right as they are: texts, choices, paths and those that are not given.

    Typer converts the others by Pydantic, whose import takes half as long as a cut.
    """

    def coerce(self, value: Any, param: Any, ctx: Context) -> Any:
        """Return the value as the type of its parameter."""
        is_text = isinstance(value, str) and value.isascii() and not param.multiple
        if is_text and param.nargs == 1 and self.parameter_info.parser is None:
            if self.annotation is str:
                return value
            kind: Any = get_origin(self.annotation)
            if kind is Literal and value in param.type_descriptor.choices:
                return value
            if self.annotation is Path:
                path, info = Path(value), self.parameter_info
                return coerce_cli_path(path, info, path_type=Path, param=param, ctx=ctx)
        if value is None:
            return super().coerce(value, param, ctx)
        return self._coerce_value(value, param, ctx)

    def _coerce_value(self, value: Any, param: Any, ctx: Context) -> Any:
        return build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=ctx)


def _take_plain_values(command: Any, ctx: Context) -> None:
    """Let the parameters of a command, --help among them, take plain values as they are."""
    for each in command.get_params(ctx):
        kind = each.type_descriptor
        each._runtime_param = PlainValues(kind.parameter_info, kind.annotation)


class Group(TyperGroup):
    """Commands in groups, with full summaries, value placeholders and plain error messages."""

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return a command whose options have placeholders for their values."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _take_plain_values(command, ctx)
        for each in () if command is None else command.params:
            if isinstance(each, TyperArgument):
                each.__class__ = Argument
                each.metavar = each.metavar or (each.name or "").upper()
            elif isinstance(each, TyperOption) and each.metavar is None and not each.is_flag:
                each.metavar = _metavar(each)
        return command

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the group's own options."""
        _take_plain_values(self, ctx)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands by group."""
        panels = (CUTTING, ARCHIVE, PORTAL, MEASURING, OTHERS)
        groups: dict[str, list[tuple[str, str]]] = {panel: [] for panel in panels}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            panel = getattr(command, "rich_help_panel", None)
            summary = (command.help or "").split("\n\n")[0].replace("\n", " ")
            groups[panel if isinstance(panel, str) else OTHERS].append((name, summary))
        width = max((len(name) for rows in groups.values() for name, _ in rows), default=0)
        for panel, rows in groups.items():
            if not rows:
                continue
            with formatter.section(panel):
                # Align the columns of all groups.
                formatter.write_dl([(name.ljust(width), summary) for name, summary in rows])

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        """Find the command. Note whether it was given --json."""
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except UsageError:
            # What a command that does not exist would make of its arguments is unknown.
            wants_json.set("--json" in args)
            raise
        if command is not None and not isinstance(command, TyperGroup):
            wants_json.set(_has_json(command, ctx, rest))
        return name, command, rest

    def invoke(self, ctx: Context) -> Any:
        """Run a command. Replace error messages on options by plain ones."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            if error.__cause__ is not None:
                from pydantic import ValidationError

                if isinstance(error.__cause__, ValidationError):
                    error.message = fault_text(error.__cause__.errors()[0])
            if ctx.invoked_subcommand == "cut" and "extra argument" in error.message:
                error.message += ": cut takes one image; for several, list them in --targets TABLE"
                if "--sky" in sys.argv:
                    error.message += "; a name of several words needs quotes"
            if ctx.parent is None:
                print_error(error.format_message(), "UsageError", error.exit_code)
            raise


def _has_json(command: Command, ctx: Context, args: list[str]) -> bool:
    """Return whether --json is among the options of a command, even if others are invalid."""
    tolerant = type(ctx)(command, parent=ctx, ignore_unknown_options=True, resilient_parsing=True)
    options, _, _ = command.make_parser(tolerant).parse_args(list(args))
    return bool(options.get("as_json"))


def _metavar(option: TyperOption) -> str:
    """Return the placeholder for the value of an option."""
    description = option.type_descriptor
    if description.is_choice:
        return "|".join(map(str, description.choices or ()))
    if (option.name or "").endswith("_mb_s"):
        return "MB/S"
    last = (option.name or "").rpartition("_")[2]
    if last in UNITS and "_" in (option.name or ""):
        return UNITS[last]
    return TYPES.get(description.annotation, (option.name or "").strip("_").upper())
