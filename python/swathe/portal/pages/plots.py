"""Plots for Bokeh, as JSON that its script draws in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from swathe.core.format import size_text
from swathe.costs.cost_model import Costs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bokeh.plotting import figure as Figure  # noqa: N812 - it is a class

    from swathe.catalog import Outcome, SampleRecord

Scheme = Literal["light", "dark"]
MOST_POINTS = 2000
HEIGHT_PX = 340
# Colours of the style sheet. The series differ in both schemes, and for colour-blind people.
COLORS: dict[Scheme, dict[str, Any]] = {
    "light": {
        "text": "#56606a",
        "line": "#dcdfdc",
        "sheet": "#ffffff",
        "accent": "#14597f",
        "model": "#a32a22",
        "series": ["#14597f", "#b35900", "#1d6b3f", "#7b3f99", "#845400", "#a32a22"],
    },
    "dark": {
        "text": "#a3aeb8",
        "line": "#313940",
        "sheet": "#191e23",
        "accent": "#7cc0e4",
        "model": "#ff9d94",
        "series": ["#7cc0e4", "#f2a65a", "#7ccf9c", "#c9a0e6", "#e3b341", "#ff9d94"],
    },
}


def profile_plots(
    samples: Sequence[SampleRecord], cost_values: Mapping[str, Any], scheme: Scheme
) -> list[dict[str, Any]]:
    """Draw the time of one request against its size, and bandwidth against streams."""
    costs = Costs.from_dict(cost_values)
    reads = [each for each in samples if each.bytes and each.requests and each.elapsed_s > 0]
    reads = reads[-MOST_POINTS:]
    return [
        _item(_requests(reads, costs, scheme), "requests"),
        _item(_streams(reads, costs, scheme), "streams"),
    ]


def outcome_plots(
    outcomes: Sequence[Outcome], scheme: Scheme, bands: tuple[float, float]
) -> list[dict[str, Any]]:
    """Draw predicted against actual seconds, with bands of these relative errors."""
    return [_item(_outcomes(outcomes[:MOST_POINTS], scheme, bands), "outcomes")]


def _item(plot: Figure, target: str) -> dict[str, Any]:
    from bokeh.core.types import ID
    from bokeh.embed import json_item

    return dict(json_item(plot, ID(target)))


def _figure(scheme: Scheme, x: str, y: str, about: str, **settings: Any) -> Figure:
    from bokeh.plotting import figure

    plot = figure(
        height=HEIGHT_PX,
        sizing_mode="stretch_width",
        toolbar_location=None,
        tools="hover,pan,reset",
        x_axis_type="log",
        y_axis_type="log",
        x_axis_label=x,
        y_axis_label=y,
        name=about,
        **settings,
    )
    color = COLORS[scheme]
    plot.background_fill_color = plot.border_fill_color = color["sheet"]
    plot.outline_line_color = None
    for axis in (*plot.xaxis, *plot.yaxis):
        axis.axis_line_color = axis.major_tick_line_color = color["line"]
        axis.minor_tick_line_color = None
        axis.axis_label_text_color = axis.major_label_text_color = color["text"]
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font = axis.major_label_text_font = "system-ui, sans-serif"
        axis.major_label_text_font_size = axis.axis_label_text_font_size = "12px"
    plot.grid.grid_line_color = color["line"]
    plot.hover.mode = "mouse"
    return plot


def _legend(plot: Figure, scheme: Scheme) -> None:
    color = COLORS[scheme]
    legend = plot.legend[0]
    legend.background_fill_color = color["sheet"]
    legend.background_fill_alpha = 0.8
    legend.border_line_color = None
    legend.label_text_color = color["text"]
    legend.label_text_font = "system-ui, sans-serif"
    legend.label_text_font_size = "12px"
    legend.spacing = 2


def _byte_axis(plot: Figure, low: float, high: float) -> None:
    """Label sizes in KiB, MiB, ..."""
    powers = range(int(np.floor(np.log2(max(low, 1)))), int(np.ceil(np.log2(high))) + 1)
    places = [2**power for power in powers if power % 2 == 0] or [1]
    places = places[:: max(1, -(-len(places) // 6))]
    plot.xaxis.ticker = places
    plot.xaxis.major_label_overrides = {place: size_text(place) for place in places}


def _requests(reads: Sequence[SampleRecord], costs: Costs, scheme: Scheme) -> Figure:
    color = COLORS[scheme]
    plot = _figure(scheme, "bytes of a request", "time, ms", "Time of one request against size")
    alone = [each for each in reads if each.streams == 1]
    size = np.array([each.bytes / each.requests for each in alone])
    times_ms = np.array([1e3 * each.elapsed_s / each.requests for each in alone])
    largest = max(float(size.max(initial=1.0)), float(costs.request[-1][0]), 2.0)
    smallest = max(min(float(size.min(initial=largest)), largest / 2), 1.0)
    grid = np.geomspace(smallest, largest, 120)
    dots = plot.scatter(
        size, times_ms, size=6, color=color["accent"], fill_alpha=0.5, line_color=None,
        legend_label="measured",
    )  # fmt: skip
    plot.line(
        grid, 1e3 * costs.request_s(grid), color=color["model"], line_width=2, legend_label="model"
    )
    plot.hover.tooltips = [("size", "@x{0,0} B"), ("time", "@y{0.000} ms")]
    plot.hover.renderers = [dots]
    plot.legend.location = "top_left"
    _byte_axis(plot, smallest, largest)
    _legend(plot, scheme)
    return plot


def _streams(reads: Sequence[SampleRecord], costs: Costs, scheme: Scheme) -> Figure:
    color = COLORS[scheme]
    plot = _figure(
        scheme, "requests in flight", "MB/s, in total", "Bandwidth against requests in flight"
    )
    groups: dict[int, list[SampleRecord]] = {}
    for each in reads:
        # Group nearly equal sizes.
        groups.setdefault(round(np.log2(max(each.bytes / each.requests, 1))), []).append(each)
    shown_groups = sorted(
        (power, alike)
        for power, alike in groups.items()
        if len({each.streams for each in alike}) > 1
    )
    dots: list[Any] = []
    for number, (power, alike) in enumerate(shown_groups[-len(color["series"]) :]):
        ink = color["series"][number]
        streams = np.array([each.streams for each in alike])
        rates = np.array([each.bytes / each.elapsed_s / 1e6 for each in alike])
        label = size_text(2**power)
        dots.append(
            plot.scatter(streams, rates, size=6, color=ink, fill_alpha=0.5, line_color=None)
        )
        stream_counts = np.unique(streams)
        requests = np.array(
            [
                max(each.requests for each in alike if each.streams == count)
                for count in stream_counts
            ]
        )
        bytes_each = float(np.median([each.bytes / each.requests for each in alike]))
        model = (
            bytes_each
            * requests
            / costs.read_s(bytes_each * requests, requests, stream_counts)
            / 1e6
        )
        plot.line(stream_counts, model, color=ink, line_width=2, legend_label=label)
    plot.hover.tooltips = [("in flight", "@x"), ("moved", "@y{0.0} MB/s")]
    plot.hover.renderers = dots
    plot.xaxis.ticker = sorted({each.streams for each in reads}) or [1]
    if shown_groups:
        plot.legend.location = "bottom_right"
        plot.legend.title = None
        _legend(plot, scheme)
    return plot


def _outcomes(outcomes: Sequence[Outcome], scheme: Scheme, bands: tuple[float, float]) -> Figure:
    color = COLORS[scheme]
    usable = [each for each in outcomes if each.actual_s > 0 and each.predicted_s > 0]
    actual = np.array([each.actual_s for each in usable])
    predictions_s = np.array([each.predicted_s for each in usable])
    both = np.concatenate(
        [actual, predictions_s, [1e-2, 1.0]] if not usable else [actual, predictions_s]
    )
    low, high = float(both.min()) / 1.6, float(both.max()) * 1.6
    plot = _figure(
        scheme,
        "actual, s",
        "predicted, s",
        "Predicted against actual time",
        x_range=(low, high),
        y_range=(low, high),
    )
    line = np.array([low, high])
    for error, alpha in zip(sorted(bands, reverse=True), (0.12, 0.22), strict=True):
        plot.varea(
            line, line * (1 - error), line * (1 + error), color=color["accent"], alpha=alpha,
            legend_label=f"within {error:.0%}",
        )  # fmt: skip
    plot.line(line, line, color=color["accent"], line_width=1)
    low_s = np.array([max(each.low_s, low) for each in usable])
    high_s = np.array([each.high_s for each in usable])
    plot.segment(actual, low_s, actual, high_s, color=color["text"], line_alpha=0.5)
    from bokeh.models import ColumnDataSource

    source = ColumnDataSource(
        {
            "actual": actual,
            "predicted": predictions_s,
            "what": [each.summary for each in usable],
            "targets": [each.targets for each in usable],
        }
    )
    dots = plot.scatter(
        "actual", "predicted", source=source, size=7, color=color["model"], fill_alpha=0.75,
        line_color=None,
    )  # fmt: skip
    plot.hover.tooltips = [
        ("work", "@what"),
        ("targets", "@targets{0,0}"),
        ("predicted", "@predicted{0.00} s"),
        ("actual", "@actual{0.00} s"),
    ]
    plot.hover.renderers = [dots]
    plot.legend.location = "top_left"
    _legend(plot, scheme)
    return plot
