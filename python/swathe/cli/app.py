"""The command `swathe`. EXIT_CODES lists its exit codes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer
from typer.main import get_group

from swathe import trace
from swathe.cli.options import ValuesCommand
from swathe.cli.output import print_error, show_warning, wants_json
from swathe.cli.usage import ARCHIVE, CUTTING, MEASURING, PORTAL, Group
from swathe.core import errors
from swathe.core.format import harmless_text
from swathe.trace.record import for_children

if TYPE_CHECKING:
    from typer._click import Command, Context

EXIT_CODES = (
    "Exit codes: 0 done, 1 some targets failed, 2 usage, 3 no such file or no access, "
    "4 damaged file, 5 region outside the image or invalid, 6 output cannot be written, "
    "7 catalogue or sandbox not usable, 70 internal error, 130 interrupted. "
    "SWATHE_DEBUG=1 shows tracebacks."
)
INTERNAL = 70
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.OptionError, 2),
    (errors.TargetsError, 2),
    (errors.NoSuchStoreError, 2),
    (errors.StoreSettingsError, 2),
    (errors.NoSuchDatasetError, 2),
    (errors.DatasetError, 2),
    (errors.SettingsError, 2),
    (errors.TraceError, 2),
    (errors.TokenError, 2),
    (errors.JobError, 2),
    (errors.NoSuchJobError, 2),
    (errors.NoSuchResultError, 2),
    (errors.NoSuchRunError, 2),
    (errors.AlgorithmError, 2),
    (errors.NoSuchAlgorithmError, 2),
    (errors.SubscriptionError, 2),
    (errors.NoSuchSubscriptionError, 2),
    (errors.CursorError, 2),
    (errors.WebhookError, 3),
    (errors.LimitError, 2),
    (errors.NoSuchHduError, 2),
    (errors.NoSuchArrayError, 2),
    (errors.RegionError, 5),
    (errors.OutputError, 6),
    (errors.CatalogError, 7),
    (errors.SandboxError, 7),
    (errors.ProgramError, 1),
    (errors.FormatError, 4),
    (errors.NotFoundError, 3),
    (errors.AccessError, 3),
    (errors.SourceError, 3),
    (errors.SwatheError, INTERNAL),
)

OBJECTS = ("ls", "stat", "cp", "put", "get", "rm")
"""Commands that share the module `objects`."""
COMMANDS = {
    **dict.fromkeys(("cut", "reduce", "algorithm", "library", "environment"), CUTTING),
    **dict.fromkeys(("info", "predict", "sample", "demo"), CUTTING),
    **dict.fromkeys(("store", "stripe", "tape", "dataset", "catalog", "cache", "find"), ARCHIVE),
    **dict.fromkeys(("run", "superfile"), ARCHIVE),
    **dict.fromkeys(OBJECTS, ARCHIVE),
    **dict.fromkeys(("portal", "job", "order", "subscribe", "subscription"), PORTAL),
    **dict.fromkeys(("pool", "sandbox"), PORTAL),
    **dict.fromkeys(("probe", "buffer", "simulate", "bench", "trace"), MEASURING),
}
"""The commands and their sections, in the order of `swathe --help`."""


class Commands(Group):
    """The commands, each imported from its module in `commands/` when it is first used."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - the signature is Typer's
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return a command. For a wrong name all are imported, as Typer suggests similar ones."""
        for name in [cmd_name] if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:
                self.commands[name] = _command(name)
        return super().get_command(ctx, cmd_name)


def _command(name: str) -> Command:
    """Return the command of a module: its function of this name, or its group `app`."""
    section = COMMANDS[name]
    module = import_module(f"swathe.cli.commands.{'objects' if name in OBJECTS else name}")
    one = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if hasattr(module, "app"):
        one.add_typer(module.app, cls=Group, name=name, rich_help_panel=section)
    else:
        kind = ValuesCommand if name in ("cut", "find") else None
        one.command(cls=kind, rich_help_panel=section)(getattr(module, name))
    return get_group(one).commands[name]


app = typer.Typer(
    cls=Commands,
    help="Cut regions out of very large FITS images, at the speed of the disk.",
    epilog=EXIT_CODES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)


def main() -> None:
    """Run the command line; turn errors into one line and an exit code."""
    wants_json.set(False)
    warnings.showwarning = show_warning
    try:
        try:
            _check_arguments()
            app(prog_name="swathe")
        finally:
            # An error in writing is reported here, not when Python ends. Standard output is None if
            # it was closed before.
            if sys.stdout is not None:
                sys.stdout.flush()
    except errors.SwatheError as error:
        _fail(error, next(code for kind, code in _CODES if isinstance(error, kind)))
    except KeyboardInterrupt as error:
        _fail(error, 130, "interrupted")
    except SystemExit as exit_:
        # Typer reports Ctrl-C so, without a message.
        if exit_.code == 130:
            _fail(exit_, 130, "interrupted")
        raise
    except BrokenPipeError:
        # The reader of our output has closed it, as `| head` does.
        _drop_output()
        sys.exit(141)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            _drop_output()
            _fail(error, 6, f"cannot write to standard output: {error.strerror}")
        # A bug in Swathe. Python's own exit code, 1, would mean that some targets failed.
        if not os.environ.get("SWATHE_DEBUG"):
            traceback.print_exc()
        _fail(error, INTERNAL, f"internal error: {type(error).__name__}: {error}")
    finally:
        _end_trace()


def _check_arguments() -> None:
    """Check that the words of the command line are valid UTF-8, as all names must be.

    Raises:
        OptionError: If one is not.
    """
    for number, word in enumerate(sys.argv[1:], 1):
        try:
            word.encode()
        except UnicodeEncodeError:
            raise errors.OptionError(
                f"argument {number}: expected valid UTF-8, found {word!a}"
            ) from None


def _drop_output() -> None:
    """Discard further standard output, as writing to it failed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end_trace() -> None:
    """Stop recording, and warn if events were dropped."""
    counts = trace.stop()
    if counts.dropped:
        total = counts.written + counts.dropped
        try:
            typer.echo(f"swathe: {counts.dropped:,} of {total:,} events were dropped", err=True)
        except OSError:
            # Standard error is closed. The work is done, so ignore this.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _fail(error: BaseException, code: int, message: str | None = None) -> None:
    if os.environ.get("SWATHE_DEBUG"):
        raise error
    text = message or str(error)
    print_error(text, type(error).__name__, code)
    # A line feed in a name or in the text of a server begins no line that could be one of ours.
    lines = harmless_text(text).replace("\n", "\n  ")
    typer.echo(f"swathe: {lines}", err=True)
    sys.exit(code)


def _version(is_requested: bool) -> None:
    if is_requested:
        from swathe._swathe import __version__

        typer.echo(f"swathe {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    trace_to: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="PLACE",
            envvar=trace.VARIABLE,
            help="Destination of recorded events: FILE, FILE?rotate_mb=100&keep=5, "
            "memory:FILE?mb=64, stderr, syslog, or a collector at tcp://HOST:PORT.",
        ),
    ] = None,
) -> None:
    if trace_to:
        trace.start(trace_to)
        # Processes that this command starts record too.
        os.environ[trace.VARIABLE] = for_children(trace_to)
