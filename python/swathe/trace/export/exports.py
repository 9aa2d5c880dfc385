"""Export a run for other tools: `swathe.trace.export_chrome` and `swathe.trace.export_otlp`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from swathe.core.errors import SettingsError
from swathe.core.outputs import write_file
from swathe.trace.run_files import run_files
from swathe.trace.ulm import read_trace

if TYPE_CHECKING:
    import os

    from swathe.trace.export.otlp import ExportCounts
    from swathe.trace.run_files import Run
    from swathe.trace.ulm import Events


def export_chrome(
    run: Run,
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> Events:
    """Write a run as a Chrome trace, which ui.perfetto.dev shows.

    Example:
        >>> swathe.trace.export_chrome("run.ulm", "trace.json")

    Args:
        run: file of events, or several; rotated files are read too.
        output: JSON file to write.
        overwrite: whether an existing file may be replaced.

    Returns:
        The events of the run.

    Raises:
        OutputExistsError: If the file exists, and `overwrite` is false.
        OutputError: If it cannot be written.
        NotFoundError: If there is no such run.
        FormatError: If the lines are no events.
    """
    from swathe.trace.export.chrome import chrome_trace

    runs = run_files(run)
    events = read_trace(runs)

    def save(file: BinaryIO) -> None:
        for piece in chrome_trace(events):
            file.write(piece.encode())

    write_file(Path(output), save, overwrite=overwrite, sources=runs)
    return events


def export_otlp(run: Run, url: str) -> ExportCounts:
    """Send the stages of a run to an OpenTelemetry receiver.

    Example:
        >>> swathe.trace.export_otlp("run.ulm", "http://127.0.0.1:4318").spans
        12

    Args:
        run: file of events, or several; rotated files are read too.
        url: URL of the receiver; `/v1/traces` is added if it has no path. Headers are taken from
            $OTEL_EXPORTER_OTLP_HEADERS, `name=value,name=value`.

    Raises:
        SettingsError: If `swathe[otel]` is not installed.
        OutputError: If the receiver cannot be reached, or does not accept all spans.
        NotFoundError: If there is no such run.
        FormatError: If the lines are no events.
    """
    try:
        from swathe.trace.export.otlp import send
    except ImportError as error:
        raise SettingsError(f"{error}; try: pip install 'swathe[otel]'") from error
    return send(read_trace(run_files(run)), url)
