"""Figures of experiments. Functions take measurements and return a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.costs.plots import figure, plain
from swathe.experiments.clients.single_client import STAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from astropy.table import Table
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

POINTS = 4000
"""Most points of a scatter plot; beyond, some are left out."""
COLORS = {
    "swathe": "C0", "swathe-indexed": "C9",
    "cfitsio": "C1", "fitsio": "C2", "astropy": "C3", "astropy-fsspec": "C6",
}  # fmt: skip
MARKS = "os^Dv*PX"
RESOURCES = {"cpu": "CPU, %", "disk": "disk busy, %", "memory": "memory, %", "swap": "swap, MB/s"}


def _grid(rows: int, columns: int, title: str, height_in: float = 3.4) -> tuple[Figure, Any]:
    """Return an empty figure of several rows of plots."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(max(6.5, 5.2 * columns), height_in * rows), layout="constrained")
    FigureCanvasAgg(canvas)
    canvas.suptitle(title)
    return canvas, canvas.subplots(rows, columns, squeeze=False)


def _panels(
    times: Mapping[Any, Any], title: str
) -> tuple[Figure, list[tuple[Axes, dict[Any, Any], list[str]]]]:
    """Return one plot per store and number of crops per image, with its cases and their labels."""
    stores = list(dict.fromkeys(case.store for case in times))
    crops = list(dict.fromkeys(case.crops for case in times))
    canvas, axes = _grid(max(len(stores), 1), max(len(crops), 1), title)
    panels = []
    for row, store in enumerate(stores):
        for column, count in enumerate(crops):
            plot = axes[row][column]
            plot.set_title(f"{short(store)}, {count} an image", fontsize="medium")
            mine = {case: of for case, of in times.items() if case[:3:2] == (store, count)}
            panels.append((plot, mine, [f"{case.method} {case.client}" for case in mine]))
    return canvas, panels


def short(store: str) -> str:
    """Return the last part of a path, for titles."""
    name = store.rstrip("/").rpartition("/")[2]
    return name if not name.startswith(("127.", "localhost")) else store


def _legend(figure: Figure, plots: Iterable[Axes]) -> None:
    """Add one legend of the colours below all plots, where it hides nothing."""
    handles: dict[str, Any] = {}
    for plot in plots:
        for handle, label in zip(*plot.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center",
            ncols=min(len(handles), 4), fontsize="small",
        )  # fmt: skip


def _beside(plot: Axes) -> None:
    """Add a legend of the lines beside a plot."""
    plot.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def overview(times: Mapping[Any, Any]) -> Figure:
    """Return bars of the median total of a crop, on a log axis."""
    canvas, panels = _panels(times, "One crop: median of all stages together, ms")
    for axes, mine, _ in panels:
        methods = list(dict.fromkeys(case.method for case in mine))
        clients = list(dict.fromkeys(case.client for case in mine))
        width = 0.8 / max(len(clients), 1)
        for at, client in enumerate(clients):
            places, heights = [], []
            for number, method in enumerate(methods):
                for case, stages in mine.items():
                    if (case.method, case.client) == (method, client):
                        places.append(number + (at - (len(clients) - 1) / 2) * width)
                        heights.append(1e3 * float(np.median(stages.sum(axis=1))))
            axes.bar(places, heights, width, label=client, color=COLORS.get(client))
        axes.set(yscale="log", ylabel="ms")
        plain(axes.yaxis)
        axes.set_xticks(range(len(methods)), methods)
        axes.grid(alpha=0.3, axis="y")
    _legend(canvas, [axes for axes, _, _ in panels])
    return canvas


def speed_ups(table: Table) -> Figure:
    """Return bars of the speed-up over other clients, on a log axis."""
    canvas, (axes,) = figure(1, "Times as fast as the other client (medians)")
    canvas.set_size_inches(7.5, 1.5 + 0.22 * len(table))
    labels = [f"{short(str(row['store']))} {row['method']} x{row['crops']}  {row['client']}"
              for row in table]  # fmt: skip
    places = np.arange(len(table))[::-1]
    colors = [COLORS.get(str(client), "0.5") for client in table["client"]]
    axes.barh(places, np.asarray(table["swathe_is"], float), color=colors)
    axes.axvline(1, color="0.3", lw=1)
    axes.set_yticks(places, labels, fontsize="small")
    axes.set(xscale="log", xlabel="swathe is so many times as fast", ylim=(-0.7, len(table) - 0.3))
    plain(axes.xaxis)
    axes.grid(alpha=0.3, axis="x")
    return canvas


def boxes(times: Mapping[Any, Any]) -> Figure:
    """Return box plots of the total of every case."""
    canvas, panels = _panels(times, "One crop: minimum, quartiles, maximum, ms")
    for axes, mine, labels in panels:
        totals = [1e3 * stages.sum(axis=1) for stages in mine.values()]
        if totals:
            boxes = axes.boxplot(totals, whis=(0, 100), widths=0.6, patch_artist=True)
            for case, box in zip(mine, boxes["boxes"], strict=True):
                box.set_facecolor(COLORS.get(case.client, "0.8"))
        axes.set_xticks(range(1, len(mine) + 1), labels, rotation=90, fontsize="x-small")
        axes.set(yscale="log", ylabel="ms")
        plain(axes.yaxis)
        axes.grid(alpha=0.3, axis="y")
    return canvas


def stage_shares(times: Mapping[Any, Any]) -> Figure:
    """Return the share of each stage in the mean time of a crop."""
    canvas, panels = _panels(times, "Where the time goes: share of each stage")
    for axes, mine, labels in panels:
        means = np.array([stages.mean(axis=0) for stages in mine.values()])
        shares = 100 * means / means.sum(axis=1, keepdims=True) if len(means) else means
        offsets = np.zeros(len(mine))
        for at, stage in enumerate(STAGES if len(means) else ()):
            axes.barh(range(len(mine)), shares[:, at], left=offsets, label=stage, color=f"C{at}")
            offsets += shares[:, at]
        axes.set_yticks(range(len(mine)), labels, fontsize="x-small")
        axes.set(xlabel="% of the time", xlim=(0, 100), ylim=(len(mine) - 0.4, -0.6))
    _legend(canvas, [axes for axes, _, _ in panels])
    return canvas


def region_bytes(table: Table) -> Figure:
    """Return least, seen and whole-image rates against region size, and regions per second."""
    stores = list(dict.fromkeys(map(str, table["store"])))
    canvas, axes = _grid(len(stores), 2, "Regions: what was moved, and how many a second")
    for row, store in enumerate(stores):
        left, right = axes[row]
        for mark, way in zip(MARKS, dict.fromkeys(map(str, table["way"])), strict=False):
            mine = table[(table["store"] == store) & (table["way"] == way)]
            if not len(mine):
                continue
            for name, color in (("least", "C2"), ("seen", "C0"), ("whole_image", "C3")):
                label = f"{name.replace('_', ' ')}, {way}"
                left.plot(mine["region"], mine[name], f"{mark}-", color=color, label=label)
            right.plot(mine["region"], mine["regions"], f"{mark}-", label=way)
        copy = table[table["store"] == store]["copy"]
        left.axhline(float(copy[0]), color="0.4", ls="--", label="copy")
        left.set(xscale="log", yscale="log", xlabel="side, pixels", ylabel="Mb/s")
        right.set(xscale="log", yscale="log", xlabel="side, pixels", ylabel="regions/s")
        left.set_title(short(store), fontsize="medium")
        left.legend(fontsize="x-small")
        right.legend(fontsize="small")
        for each in (left, right):
            plain(each.xaxis, each.yaxis)
            each.grid(alpha=0.3)
    return canvas


def ramp(name: str, at: Mapping[str, Array], records: Mapping[str, Array]) -> Figure:
    """Return response time, throughput and offered load over time.

    Args:
        name: name of the store or portal.
        at: by name, values of each window: `time`, `clients`, `offered`, `sent`, `throughput`,
            `median`, `p95`, `busy`.
        records: `due` and `response` of each answered request.
    """
    canvas, axes = _grid(3, 1, f"Clients join: {short(name)}", 2.5)
    first, second, third = (row[0] for row in axes)
    step = max(1, len(records["due"]) // POINTS)
    first.plot(
        records["due"][::step], 1e3 * records["response"][::step], ".", ms=2, alpha=0.3,
        color="0.6", rasterized=True,
    )  # fmt: skip
    first.plot(at["time"], at["median"], color="C0", label="median")
    first.plot(at["time"], at["p95"], color="C3", label="95 %")
    first.set(yscale="log", ylabel="response, ms")
    plain(first.yaxis)
    second.plot(at["time"], at["offered"], color="C1", label="offered")
    second.plot(at["time"], at["sent"], color="C2", ls=":", label="sent")
    second.plot(at["time"], at["throughput"], color="C0", label="throughput")
    second.set(ylabel="requests/s", ylim=(0, None))
    third.step(at["time"], at["clients"], where="mid", color="0.3", label="clients")
    third.plot(at["time"], at["busy"], color="C4", label="requests that wait")
    third.set(ylabel="clients, requests", xlabel="s", ylim=(0, None))
    for plot in (first, second, third):
        plot.set_xlim(0, at["time"][-1] + at["time"][0])
        plot.grid(alpha=0.3)
        _beside(plot)
    return canvas


def per_client(name: str, table: Table) -> Figure:
    """Return what each client got."""
    from matplotlib.ticker import MaxNLocator

    canvas, (left, right) = figure(2, f"Each client: {short(name)}")
    left.bar(table["client"], table["rate"], width=1.0)
    left.set(xlabel="client, in order of joining", ylabel="answers/s while there")
    right.errorbar(
        table["client"], table["median"], ls="", marker="o", ms=3,
        yerr=[table["median"] - table["q1"], table["q3"] - table["median"]],
    )  # fmt: skip
    right.set(xlabel="client", ylabel="response, ms (quartiles)", ylim=(0, None))
    for plot in (left, right):
        plot.xaxis.set_major_locator(MaxNLocator(integer=True))
        plot.grid(alpha=0.3)
    return canvas


def load_over_time(title: str, host: Mapping[str, Array], work: Mapping[str, Array]) -> Figure:
    """Return CPU, disk, memory and swap over time, and against each other.

    Args:
        title: title of the figure.
        host: by name, samples of the host: `time`, `cpu`, `disk`, `memory`, `swap`, `network`, and
            `line`, NaN if the bandwidth of the line is unknown.
        work: values of each window: `time`, `rate`, `workers`.
    """
    canvas, axes = _grid(2, 3, title, 3.0)
    over, against = axes
    over[0].plot(host["time"], host["cpu"], color="C0", label="CPU %")
    over[0].plot(host["time"], host["disk"], color="C1", label="disk busy %")
    if np.isfinite(host["line"]).any():
        over[0].plot(host["time"], host["line"], color="C5", label="line %")
    over[0].set(ylabel="%", ylim=(0, 105))
    over[1].plot(host["time"], host["memory"], color="C2", label="memory %")
    over[1].plot(host["time"], host["swap"], color="C3", label="swap, MB/s")
    over[1].set(ylim=(0, None))
    over[2].plot(work["time"], work["rate"], color="C4", label="reductions/s")
    over[2].step(work["time"], work["workers"], where="mid", color="0.4", label="workers")
    over[2].set(yscale="log")
    plain(over[2].yaxis)
    for plot in over:
        plot.set_xlabel("s")
        plot.legend(fontsize="small")
    for plot, (x, y) in zip(
        against, (("cpu", "disk"), ("cpu", "memory"), ("disk", "swap")), strict=True
    ):
        plot.plot(host[x], host[y], ".", color="C0")
        plot.set(xlabel=RESOURCES[x], ylabel=RESOURCES[y])
        # A series of zeros also has an axis.
        most = [1.05 * float(np.max(host[name], initial=1.0)) for name in (x, y)]
        plot.set(xlim=(0, most[0]), ylim=(0, most[1]))
    for plot in (*over, *against):
        plot.grid(alpha=0.3)
    return canvas


def differences(rows: Sequence[Mapping[str, Any]], title: str) -> Figure:
    """Return ratios of two runs with their intervals; those that differ are coloured."""
    canvas, (axes,) = figure(1, title)
    canvas.set_size_inches(7.5, 1.5 + 0.22 * len(rows))
    colors = {"worse": "C3", "better": "C2"}
    for place, row in zip(range(len(rows))[::-1], rows, strict=True):
        color = colors.get(row["verdict"], "0.5")
        axes.plot([row["low"], row["high"]], [place, place], "-", color=color)
        axes.plot(row["ratio"], place, "o", ms=4, color=color)
    axes.axvline(1, color="0.3", lw=1)
    axes.set_yticks(range(len(rows))[::-1], [row["case"] for row in rows], fontsize="x-small")
    axes.set(xscale="log", xlabel="second over first (95 %)", ylim=(-0.7, len(rows) - 0.3))
    plain(axes.xaxis)
    axes.grid(alpha=0.3, axis="x")
    return canvas


def buffers(studies: Iterable[Any]) -> dict[str, Figure]:
    """Return the figures of the read-buffer study, one per store."""
    from swathe.costs.plots import buffer_figure

    return {
        f"buffer-{number}": buffer_figure(study, f"{study.object} from {study.host}")
        for number, study in enumerate(studies, 1)
    }
