"""Options of commands that come from the operations: `--operation`, `--format`, `--stack`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Annotated, Any, Literal

import typer

from swathe.operations.registry import formats, operations, own_options

RESULTS = "results"


def with_operations(
    command: Callable[..., None] | None = None, *, of_granules: bool = True
) -> Callable[..., Any]:
    """Add the options of operations to a command.

    The command takes the given options as the mapping `results`, by name.

    Args:
        command: the command; `None` to return the function that does it.
        of_granules: whether it takes operations that read granules, too.
    """
    if command is None:
        return partial(with_operations, of_granules=of_granules)
    names_of_operations = tuple(
        name for name, kind in operations().items() if of_granules or not kind.reads_granules
    )
    parameters = [
        _option("operation", "Operation on the targets; by default cut.", names_of_operations),
        _option("format", "Format of results; by default the operation's first.", tuple(formats())),
    ]
    parameters += [
        _option(name, f"{option.help}, with --operation {kind.name}.", option.values)
        for name, (kind, option) in own_options().items()
        if kind.name in names_of_operations
    ]
    signature = inspect.signature(command, eval_str=True)
    others = [each for name, each in signature.parameters.items() if name != RESULTS]
    names = [each.name for each in parameters]

    @wraps(command)
    def run(**arguments: Any) -> None:
        results = {name: arguments.pop(name) for name in names}
        command(
            **arguments,
            results={name: value for name, value in results.items() if value is not None},
        )

    # The command line is made from these.
    run.__dict__["__signature__"] = signature.replace(parameters=[*others, *parameters])
    run.__annotations__ = {each.name: each.annotation for each in (*others, *parameters)}
    return run


def _option(name: str, text: str, values: tuple[str, ...]) -> inspect.Parameter:
    kind: Any = Literal[values] if values else str
    annotation = Annotated[kind | None, typer.Option(f"--{name.replace('_', '-')}", help=text)]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )
