"""Plot measurements. Functions take data and an Axes; `save` writes a figure."""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from swathe.core.errors import OutputError
from swathe.core.format import size_text
from swathe.core.outputs import check_output, write_file

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from swathe.costs.cost_model import Costs, Sample
    from swathe.costs.probing.read_buffer import BufferStudy

WIDTH_IN, HEIGHT_IN = 11.0, 4.6


def figure(columns: int, title: str) -> tuple[Figure, list[Axes]]:
    """Return an empty figure with plots side by side, without a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    result = Figure(figsize=(WIDTH_IN / 2 * max(columns, 1.4), HEIGHT_IN), layout="constrained")
    FigureCanvasAgg(result)
    result.suptitle(title)
    axes = result.subplots(1, columns, squeeze=False)[0]
    return result, list(axes)


def plain(*axes: Axis) -> None:
    """Label log axes with plain numbers."""
    from matplotlib.ticker import LogFormatterMathtext

    class Plain(LogFormatterMathtext):
        def __call__(self, x: float, pos: int | None = None) -> str:
            # The base class decides which ticks have a label.
            return f"{x:,.6g}" if super().__call__(x, pos) else ""

    for axis in axes:
        axis.set_major_formatter(Plain())
        axis.set_minor_formatter(Plain(labelOnlyBase=False))


def probe_figure(samples: Sequence[Sample], costs: Costs, title: str) -> Figure:
    """Return a figure of request time against size, and bandwidth against streams."""
    result, (left, right) = figure(2, title)
    draw_requests(left, samples, costs)
    draw_streams(right, samples, costs)
    return result


def buffer_figure(study: BufferStudy, title: str) -> Figure:
    """Return a figure of the time to read an object against the buffer size."""
    result, (only,) = figure(1, title)
    draw_buffer(only, study)
    return result


def draw_requests(axes: Axes, samples: Sequence[Sample], costs: Costs) -> None:
    """Draw the times of single requests, and the fitted curve."""
    alone = [sample for sample in samples if sample.kind == "read" and sample.streams == 1]
    size = np.array([sample.bytes / sample.requests for sample in alone])
    seconds_each = np.array([sample.elapsed_s / sample.requests for sample in alone])
    axes.plot(size, 1e3 * seconds_each, "o", ms=4, alpha=0.5, mec="none", label="measured")
    largest = max(size.max(initial=1.0), costs.request[-1][0])
    grid = np.geomspace(max(size.min(initial=largest), 1), largest, 200)
    axes.plot(grid, 1e3 * costs.request_s(grid), "-", color="C3", label="model")
    axes.set(xscale="log", yscale="log", xlabel="bytes of a request", ylabel="time, ms")
    plain(axes.yaxis)
    _byte_ticks(axes, grid[0], largest)
    axes.set_title("one request at a time", fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend()


def draw_streams(axes: Axes, samples: Sequence[Sample], costs: Costs) -> None:
    """Draw the bandwidth of many requests, one colour per size, and the model."""
    reads = [sample for sample in samples if sample.kind == "read"]
    groups: dict[int, list[Sample]] = {}
    for sample in reads:
        groups.setdefault(sample.bytes // sample.requests, []).append(sample)
    for color, (size, alike) in enumerate(sorted(groups.items())):
        streams = np.array([sample.streams for sample in alike])
        rate = np.array([sample.bytes / sample.elapsed_s for sample in alike])
        axes.plot(streams, rate / 1e6, "o", color=f"C{color % 10}", ms=4, alpha=0.5, mec="none")
        stream_counts = np.unique(streams)
        requests = [
            max(sample.requests for sample in alike if sample.streams == count)
            for count in stream_counts
        ]
        total_bytes = size * np.array(requests)
        model = total_bytes / costs.read_s(total_bytes, requests, stream_counts)
        axes.plot(stream_counts, model / 1e6, "-", color=f"C{color % 10}", label=size_text(size))
    axes.axhline(costs.total_bytes_per_s / 1e6, color="0.5", ls=":")
    best_bytes_per_s = max((sample.bytes / sample.elapsed_s for sample in reads), default=1.0)
    axes.set(xscale="log", yscale="log", xlabel="requests in flight", ylabel="MB/s, all together")
    axes.set_ylim(top=3 * best_bytes_per_s / 1e6)
    plain(axes.yaxis)
    axes.set_xticks(ticks := sorted({sample.streams for sample in reads}), map(str, ticks))
    axes.minorticks_off()
    axes.set_title("many at a time (lines: model)", fontsize="medium")
    axes.grid(alpha=0.3)
    if groups:
        axes.legend(fontsize="small", title="each request", ncols=2)


def draw_buffer(axes: Axes, study: BufferStudy) -> None:
    """Draw a study: all repeats, medians, the interval within 5 % of the best, the choice."""
    for repeat in study.seconds:
        axes.plot(study.sizes, repeat, "o", color="C0", ms=3, alpha=0.4, mec="none")
    axes.plot(study.sizes, study.median, "-", color="C3", label="median")
    axes.axvspan(
        study.low / 1.3,
        study.high * 1.3,
        alpha=0.15,
        color="C2",
        label="within 5 % of the best, or the noise",
    )
    axes.axvline(study.choice, color="C2", label=f"chosen: {size_text(study.choice)}")
    axes.set(xscale="log", yscale="log", xlabel="bytes of the buffer")
    axes.set_ylabel(f"s to read {size_text(study.object_bytes)}")
    plain(axes.yaxis)
    _byte_ticks(axes, float(study.sizes[0]), float(study.sizes[-1]))
    axes.grid(alpha=0.3)
    axes.legend()


def _byte_ticks(axes: Axes, low: float, high: float) -> None:
    """Label sizes with units."""
    powers = range(int(np.ceil(np.log2(low))), int(np.log2(high)) + 1)
    places = [2**power for power in powers][:: max(1, len(powers) // 7)]
    axes.set_xticks(places, [size_text(place) for place in places], rotation=30)
    axes.set_xticks([], minor=True)


def save(
    figure: Figure, path: str | os.PathLike[str], caption: str = "", *, overwrite: bool = False
) -> None:
    """Write a figure as `.png` or `.svg`, or as an `.html` page that needs no other file.

    Raises:
        OutputExistsError: If the file exists and `overwrite` is false.
        OutputError: If the suffix is another, or the file cannot be written.
    """
    output = plot_path(path, overwrite=overwrite)

    def write(file: BinaryIO) -> None:
        match output.suffix.lower():
            case ".png":
                figure.savefig(file, format="png", dpi=130)
            case ".svg":
                file.write(svg_text(figure).encode())
            case _:
                file.write(page(figure, caption).encode())

    write_file(output, write, overwrite=overwrite)


def plot_path(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    sources: Iterable[str | os.PathLike[str]] = (),
) -> Path:
    """Return the path of a figure if it can be written; for a check before measuring.

    Args:
        path: file of the figure.
        overwrite: whether an existing file may be replaced.
        sources: local files that are read; none of them is ever replaced.

    Raises:
        OutputExistsError: If the file exists and `overwrite` is false.
        OutputError: If the suffix is not one that `save` writes, the folder does not exist, or the
            file is a source.
    """
    output = Path(path)
    if output.suffix.lower() not in (".png", ".svg", ".html"):
        raise OutputError(f"{output}: expected a plot *.png, *.svg or *.html")
    check_output(output, overwrite=overwrite, sources=sources)
    return output


def page(figure: Figure, caption: str = "") -> str:
    """Return an HTML page with the figure as inline SVG."""
    title = html.escape(figure.get_suptitle())
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
        "<style>body{font:15px sans-serif;margin:2em}svg{max-width:100%;height:auto}</style>\n"
        f"{svg_text(figure)}\n<pre>{html.escape(caption)}</pre></html>\n"
    )


def svg_text(figure: Figure) -> str:
    """Return a figure as SVG; the same figure gives the same text."""
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context({"svg.hashsalt": "swathe"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
