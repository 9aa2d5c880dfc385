"""Figure of a trace for reports: the viewer's initial view."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from swathe.core.errors import OutputError
from swathe.core.outputs import write_file
from swathe.trace.analysis.stages import AROUND, stage_of
from swathe.trace.viewer.lifelines import FAILED, OUTCOMES, Lifelines, TracedEvents
from swathe.trace.viewer.loads import LoadLine, bin_rates, first_loads, loads, series

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#0072b2", "#b8860b", "#cc79a7", "#d55e00")
"""Colours of OUTCOMES, distinct also for colour-blind readers."""
FEW = 20_000
"""Segments above which they are drawn as a density."""
PALE = 0.4
BINS = 400
PER_INCH = 100


def figure(
    trace: TracedEvents,
    title: str,
    *,
    kind: str | None = None,
    events: Sequence[str] | None = None,
    load_lines: Sequence[LoadLine] | None = None,
    width: int = 1600,
    height: int = 1000,
) -> Figure:
    """Draw lifelines, and load-lines below them on the same time axis."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    load_lines = first_loads(loads(trace)) if load_lines is None else load_lines
    canvas = Figure(
        figsize=(width / PER_INCH, height / PER_INCH), dpi=PER_INCH, layout="constrained"
    )
    FigureCanvasAgg(canvas)
    canvas.suptitle(title, x=0.01, ha="left", fontsize="medium")
    shares = [max(3.0, 0.9 * len(load_lines)), *[1.0] * len(load_lines)]
    axes = canvas.subplots(len(shares), 1, sharex=True, squeeze=False, height_ratios=shares)[:, 0]
    draw_lines(axes[0], trace, trace.lines(kind or trace.kinds()[0]), events, width)
    for place, load in zip(axes[1:], load_lines, strict=True):
        draw_load(place, trace, load)
    times = trace.events.time_ns
    if len(times):
        start = datetime.fromtimestamp(times[0] / 1e9, UTC)
        axes[-1].set_xlabel(f"seconds after {start:%Y-%m-%d %H:%M:%S.%f} UTC")
    return canvas


def seconds(trace: TracedEvents, times_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return times in seconds after the first event."""
    start = trace.events.time_ns[0] if len(trace.events.time_ns) else 0
    offsets: NDArray[np.float64] = (times_ns - start) / 1e9
    return offsets


def segments(
    trace: TracedEvents, lines: Lifelines, events: Sequence[str] | None = None
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return the two events of each segment between chosen types, and its line."""
    points, line = points_of(trace, lines, events)
    same = line[1:] == line[:-1]
    return points[:-1][same], points[1:][same], line[1:][same]


def points_of(
    trace: TracedEvents, lines: Lifelines, events: Sequence[str] | None = None
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the events of chosen types, and the line of each."""
    codes = trace.events.event
    in_choice = np.array([events is None or word in events for word in codes.words], bool)
    line = np.repeat(np.arange(len(lines)), np.diff(lines.starts))
    mask = in_choice[codes.codes[lines.points]]
    return lines.points[mask], line[mask]


def draw_lines(
    axes: Axes,
    trace: TracedEvents,
    lines: Lifelines,
    events: Sequence[str] | None = None,
    width: int = 1600,
) -> None:
    """Draw lifelines; as a density if there are many."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    lanes = trace.lanes if events is None else [word for word in events if word in trace.lanes]
    heights = {word: place for place, word in enumerate(lanes)}
    words = trace.events.event.words
    lane = np.array([heights.get(word, -1) for word in words])[trace.events.event.codes]
    first, last, line = segments(trace, lines, events)
    x = seconds(trace, trace.events.time_ns)
    end = float(x[-1]) if len(x) else 1.0
    codes = trace.events.event.codes
    around = np.array([stage_of(word)[0] in AROUND for word in words])
    # Waiting for the beginning or end of a job has no outcome.
    waits = (around[codes[first]] | around[codes[last]]) if len(line) else np.zeros(0, bool)
    how = np.where(waits, -1, lines.outcome[line].astype(np.int64))
    for outcome, color in ((-1, COLORS[0]), *enumerate(COLORS)):
        a, b = first[how == outcome], last[how == outcome]
        fade = PALE if outcome < 0 else 1.0
        if not len(a):
            continue
        if len(line) > FEW:
            counts = density(x[a], x[b], lane[a], lane[b], (end or 1.0, len(lanes)), width)
            _draw_density(axes, counts, (end or 1.0, len(lanes)), color, fade)
            continue
        ends = np.stack([x[a], lane[a], x[b], lane[b]], axis=1).reshape(-1, 2, 2)
        strong = 1.0 if outcome == FAILED else min(1.0, 0.15 + 60 / (len(line) + 1))
        axes.add_collection(LineCollection(list(ends), colors=color, lw=0.8, alpha=fade * strong))
    points, line = points_of(trace, lines, events)
    for outcome, color in enumerate(COLORS):
        a = points[lines.outcome[line] == outcome]
        # One per pixel: there may be millions.
        columns = (x[a] / (end or 1.0) * width).astype(np.int64)
        _, one = np.unique(columns * len(lanes) + lane[a], return_index=True)
        if len(one):
            axes.plot(x[a][one], lane[a][one], ".", color=color, ms=3, clip_on=False)
    axes.set_yticks(range(len(lanes)), lanes, fontsize="x-small")
    axes.set(xlim=(0, end or 1.0), ylim=(-0.7, len(lanes) - 0.3))
    axes.grid(axis="y", alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    counts = np.bincount(lines.outcome, minlength=len(OUTCOMES))
    handles = [
        Line2D([], [], color=color, label=f"{name}: {count:,}")
        for name, color, count in zip(OUTCOMES, COLORS, counts, strict=True)
        if count
    ]
    if handles:
        title = f"{len(lines):,} {lines.kind}{'s' if len(lines) != 1 else ''}"
        axes.legend(handles=handles, title=title, loc="upper left", fontsize="small")


def density(
    x1: NDArray[np.float64],
    x2: NDArray[np.float64],
    y1: NDArray[np.int64],
    y2: NDArray[np.int64],
    most: tuple[float, int],
    width: int,
) -> NDArray[np.int64]:
    """Count the segments through each pixel, with `width` columns and rows up to `most`."""
    end, lanes = most
    rows = max(2, 600 // lanes)
    # For each row, what begins in a column, less what ended before it.
    change = np.zeros((lanes * rows, width + 1), np.int64)
    for across in np.unique(np.abs(y2 - y1)):
        mine = np.abs(y2 - y1) == across
        x, y = x1[mine], y1[mine]
        dx, dy = x2[mine] - x, y2[mine] - y
        steps = rows * max(int(across), 1)
        for step in range(steps):
            row = ((y + (step + 0.5) / steps * dy) * rows).astype(np.int64)
            row = np.minimum(row, lanes * rows - 1)
            here, there = (
                np.clip(((x + part / steps * dx) / end * width).astype(np.int64), 0, width - 1)
                for part in (step, step + 1)
            )
            np.add.at(change, (row, np.minimum(here, there)), 1)
            np.add.at(change, (row, np.maximum(here, there) + 1), -1)
    counts: NDArray[np.int64] = change.cumsum(axis=1)[:, :width]
    return counts


def _draw_density(
    axes: Axes, counts: NDArray[np.int64], most: tuple[float, int], color: str, strong: float
) -> None:
    from matplotlib.colors import to_rgb

    end, lanes = most
    shade = np.log1p(counts) / np.log1p(max(1, counts.max()))
    picture = np.empty((*counts.shape, 4))
    picture[..., :3] = to_rgb(color)
    picture[..., 3] = strong * np.where(counts, 0.25 + 0.75 * shade, 0)
    axes.imshow(
        picture,
        extent=(0, end, 0, lanes),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
    )


def draw_load(axes: Axes, trace: TracedEvents, load: LoadLine) -> None:
    """Draw a load-line."""
    from matplotlib.ticker import EngFormatter

    times = trace.events.time_ns
    for number, line in enumerate(series(trace, load)):
        label = line.name if line.name != load.name else None
        if load.how == "rate" and len(times):
            edges = np.linspace(times[0], times[-1] + 1, BINS + 1).astype(np.int64)
            if len(np.unique(edges)) == len(edges):
                axes.stairs(bin_rates(line, edges), seconds(trace, edges), label=label)
            continue
        step = slice(None, None, max(1, len(line.values) // 200_000))
        at, values = seconds(trace, line.time_ns)[step], line.values[step]
        axes.step(at, values, where="post", lw=0.9, color=f"C{number % 10}", label=label)
    unit = f", {load.unit}" if load.unit else ""
    axes.set_title(f"{load.name}{unit}", loc="left", fontsize="small", pad=3)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="x-small", loc="upper right")


def save(figure: Figure, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a figure.

    Raises:
        OutputExistsError: If there is a file of this name, and `overwrite` is false.
        OutputError: If it cannot be written.
    """
    where = Path(path)
    kind = where.suffix.lower()
    if kind not in (".png", ".svg"):
        raise OutputError(f"{where}: expected *.png or *.svg")
    write_file(where, lambda file: figure.savefig(file, format=kind[1:]), overwrite=overwrite)
