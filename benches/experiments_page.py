"""The page docs/experiments/README.md: figures of 2005 and 2007 beside those measured."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from astropy.table import Table

from swathe.core.format import size_text
from swathe.experiments.results.report import markdown_table
from swathe.experiments.results.result import Study

REGIONS_2005 = {
    "GPFS LAN": ((17.2, 11, 0.0, 123.3, 841.4, 600), (11.6, 11, 1.8, 167.5, 567.4, 600),
                 (6.1, 39, 78.3, 290.2, 299.1, 600)),
    "GPFS WAN, 56 ms": ((1.1, 3, 0.0, 34.4, 53.8, 160), (1.1, 3, 0.2, 33.7, 53.1, 160),
                        (0.8, 3, 8.4, 33.0, 36.7, 160)),
    "NFS": ((14.7, 5, 0.0, 31.7, 717.6, 320), (12.0, 12, 1.8, 136.5, 588.0, 320),
            (3.1, 28, 46.1, 151.2, 152.3, 320)),
}  # fmt: skip
"""By size 10, 100, 1000: regions/s, CPU %, least, seen, whole-image and copy Mb/s."""
FSSPEC = "astropy-fsspec"
KEPT = ("local", "nginx-lan", "nginx-wan", "xrootd-lan", "s3-lan")


class Found:
    """What was measured, by what it is asked for."""

    def __init__(self, studies: dict[str, list[Study]]) -> None:
        self.studies = studies

    def crop_ms(self, store: str, method: str, crops: int, client: str) -> float:
        """Median total of a crop; NaN where it was not measured."""
        for study in self.studies["single"]:
            table = study.table
            for row in table[table["stage"] == "total"]:
                case = (str(row["store"]), row["method"], row["crops"], row["client"])
                if case == (store, method, crops, client):
                    return float(row["median"])
        return math.nan

    def ramps(self, part: str = "ramp") -> list[dict[str, Any]]:
        """Rows of all ramps, the portal as `portal`."""
        return [
            {**dict(zip(row.colnames, row.as_void().tolist(), strict=True)),
             "target": "portal" if str(row["target"]).startswith("http") else str(row["target"])}
            for study in self.studies[part]
            for row in study.table
        ]  # fmt: skip

    def closed(self) -> dict[str, dict[str, Any]]:
        """Rows of the closed ramps by their targets."""
        return {row["target"]: row for row in self.ramps() if row["model"] == "closed"}

    def regions(self, way: str) -> Table:
        """Rows of the region study in one way."""
        table = self.studies["region"][0].table
        return table[table["way"] == way]

    def region(self, store: str, column: str, side: int = 100) -> float:
        """A value of regions of a side, asked for one at a time."""
        one = self.regions("one")
        return float(one[(one["store"] == store) & (one["region"] == side)][column][0])


def page(studies: dict[str, list[Study]]) -> str:
    """Give the page."""
    found = Found(studies)
    parts = [
        "# Experiments: 2005 and now",
        "`make experiments` makes this page and its figures; the words with numbers in them are "
        "made of the measurements too. Whole reports, with every case, box plots and settings, are "
        "left below `build/bench/experiments`; `make experiments ARGS='--only ramp'` measures one "
        f"part of them anew ({', '.join(studies)}). How to run such experiments on your own "
        "stores: [experiments.md](../experiments.md). Figures of 2005 and 2007 are those of "
        "the studies themselves.",
        f"Measured {machines(studies)}. Servers, the proxy that makes the links, and clients "
        "share these cores: what is limited by the CPU below would be faster with machines of "
        "their own. Frames are 2048 x 1489 pixels of 16 bits, as in 2005, in memory. The "
        "links are those of 2005 too: LAN 1 ms and 600 Mb/s, WAN 56 ms and 160 Mb/s, which is what "
        "a copy reached then; so what differs is software and CPU, not the line. S3 is s3s-fs, "
        "which sends an answer in pieces and waits with the last one until all before are "
        "acknowledged (Nagle's algorithm is on). A client on the same host acknowledges only after "
        "40 ms, so there it would wait: 48 ms for 400 kB, 3 ms if it acknowledges at once. The "
        "proxy does, as over Ethernet every second segment is.",
        one_client(found),
        many_clients(found),
        several_hosts(found),
        region_sizes(found),
        loads(found),
        read_buffers(found),
        conclusions(found),
    ]
    return "\n\n".join(parts) + "\n"


def machines(studies: dict[str, list[Study]]) -> str:
    """When, with what and where the parts were measured; which, where that differs."""
    told: dict[str, dict[str, list[str]]] = {}
    for name, (study, *_) in studies.items():
        at = study.circumstances
        when = f"{at['started'][:10]} with swathe {at['swathe']} ({at['git'] or 'no git'})"
        where = (
            f"on {at['cores']} cores of {at['cpu']}, {at['memory_bytes'] / 2**30:.0f} GiB, "
            f"{at['kernel']}, Python {at['python']}, astropy {at['peers']['astropy']}, fitsio "
            f"{at['peers']['fitsio']}"
        )
        told.setdefault(where, {}).setdefault(when, []).append(name)
    alike = sum(map(len, told.values())) == 1
    return "; ".join(
        ", ".join(when if alike else f"{' and '.join(of)} {when}" for when, of in times.items())
        + f" {where}"
        for where, times in told.items()
    )


def ms(value: float) -> str:
    """A time in milliseconds as a cell."""
    return "-" if math.isnan(value) else f"{value:.3g}"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table of texts."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def one_client(found: Found) -> str:
    """Single crops beside those of 2005."""
    head = ["", "2005", "store", "swathe", "swathe, indexed", "cfitsio (C)", "fitsio", "astropy",
            "astropy, fsspec"]  # fmt: skip
    then = {
        (1, "local"): "< 40 Java, < 25 C",
        (1, "nginx-lan"): "about 100 (NFS, GPFS)",
        (10, "local"): "9 to 10",
        (10, "nginx-lan"): "< 20 NFS, < 50 GPFS",
    }
    rows = []
    for crops in (1, 10):
        for store in KEPT:
            clients = ("swathe", "swathe-indexed", "cfitsio", "fitsio", "astropy", FSSPEC)
            rows.append(
                [f"{crops} an image", then.get((crops, store), ""), store]
                + [ms(found.crop_ms(store, "FIT", crops, client)) for client in clients]
            )
    methods = ["GZ", "GUNZIP", "FIT", "bz2", "fz"]
    packed = [
        [f"{store}, {client}, {crops} an image"]
        + [ms(found.crop_ms(store, method, crops, client)) for method in methods]
        for store in ("local", "nginx-lan", "nginx-wan")
        for client in ("swathe", "swathe-indexed", "cfitsio")
        for crops in (1, 10)
    ]
    plain = {
        (store, crops, client): found.crop_ms(store, "FIT", crops, client)
        for store in KEPT
        for crops in (1, 10)
        for client in ("swathe", "cfitsio", FSSPEC)
    }
    ours = plain["local", 1, "swathe"]
    return "\n\n".join(
        [
            "## One client",
            "Crops of 100 x 100 pixels from plain frames, milliseconds, median of copy, read, crop "
            "and write together. Other clients than ours copy an image from a server before they "
            "read it; *astropy, fsspec* reads it in place by blocks of 1 MB, as astropy's "
            "documentation has it for small cutouts (only what is asked by HTTP: for S3 it needs "
            "s3fs, which is not installed here). Nothing is known of the images before, but for "
            "*indexed*.",
            markdown(head, rows),
            "The same by method (GZ: the archive's `.gz`; GUNZIP: decompressed once into a local "
            "file, then cropped; bz2 and fz likewise in place):",
            markdown(["ms", *methods], packed),
            "![Median of a crop by method and client](single-1-overview.png) "
            "![the same over links](single-2-overview.png)",
            f"In twenty years a crop from a local disk went from 25 ms (C) to {ms(ours)} ms "
            f"({25 / ours:.0f} times as fast), of ten crops an image each from 9 to "
            f"{ms(plain['local', 10, 'swathe'])} ms; a crop over a LAN of the same speed from "
            f"about 100 ms to {ms(plain['nginx-lan', 1, 'swathe'])} ms, because only the part of "
            "the image that has the rows of the crop comes over it. To copy the image first, as "
            f"for cfitsio, takes {ms(plain['nginx-lan', 1, 'cfitsio'])} ms today, too, and astropy "
            f"with its blocks of 1 MB {ms(plain['nginx-lan', 1, FSSPEC])} ms.",
            "Ten crops of an image asked for one after the other are ten round trips: over the WAN "
            f"{ms(plain['nginx-wan', 10, 'swathe'])} ms each, where cfitsio, which copies the "
            f"image once, takes {ms(plain['nginx-wan', 10, 'cfitsio'])} ms each. Who has a list "
            "gives it to `cut_many`, which asks for all of it at once (*as a list* below).",
        ]
    )


def many_clients(found: Found) -> str:
    """Ramps beside those of 2005."""
    ramps = found.ramps()
    rows = [
        [
            row["target"],
            row["model"],
            f"{row['peak']:,.0f}",
            str(row["peak_clients"]),
            ms(row["peak_response"]),
            ms(row["all_response"]),
            f"{row['many']:,.3g}",
        ]
        for row in ramps
    ]
    closed = found.closed()
    local, lan, wan, xrootd, s3 = (closed[name] for name in KEPT)
    crop_mb = {store: found.region(store, "seen") / found.region(store, "regions")
               for store in ("nginx-lan", "nginx-wan")}  # fmt: skip
    of_line = {store: filled(mb * closed[store]["peak"] / found.region(store, "copy"))
               for store, mb in crop_mb.items()}  # fmt: skip
    then = markdown(
        ["2005, 100 clients on 50 nodes", "crops/s", "response, ms", "100,000 crops, s"],
        [
            ["local disks (extrapolated)", "1,500 to over 10,000", "", "10 to 30"],
            ["GPFS over LAN", "500 to 1,500", "60 to 200", "70 to 200"],
            ["NFS", "about 200", "", ""],
            ["PVFS", "< 100", "", ""],
            ["GPFS over WAN", "25 to 130", "1,500", "up to 3,000"],
        ],
    )
    return "\n\n".join(
        [
            "## 1 to 100 clients",
            "Clients join one after the other and stay; each is a process (against the portal a "
            "thread), all on this one machine with its "
            f"{found.studies['ramp'][0].circumstances['cores']} cores. *Closed*: each asks again "
            "when it was answered. *Open*: requests are due at fixed times, and response counts "
            "from then. 100,000 crops: computed from the peak, not run.",
            markdown(
                ["target", "model", "peak, crops/s", "with clients", "response then, ms",
                 "response with all, ms", "100,000 crops, s"],
                rows,
            ),
            then,
            "![Clients join, local files](ramp-1-ramp-1.png) "
            "![Clients join, nginx over the WAN](ramp-1-ramp-3.png)",
            f"From local files the two cores make {local['peak']:,.0f} crops/s (with "
            f"{local['peak_clients']} clients), where 1,500 to over 10,000 were extrapolated for "
            f"50 local disks: 100,000 crops would take {local['many']:.3g} s (10 to 30 then). In "
            "2005 100 clients on 50 nodes made 500 to 1,500 crops/s over a LAN and 25 to 130 over "
            "a WAN of 56 ms; here clients, servers and proxies are on one machine and all clients "
            f"share one line, over which they make {lan['peak']:,.0f} (with {lan['peak_clients']}; "
            f"XRootD {xrootd['peak']:,.0f}, S3 {s3['peak']:,.0f}; then NFS about 200, PVFS under "
            f"100) and {wan['peak']:,.0f} (with {wan['peak_clients']}). A crop moves "
            f"{125 * crop_mb['nginx-lan']:.0f} kB over the LAN, its rows and what lies between "
            f"them in few requests, which is soonest for one client: with many that is "
            f"{of_line['nginx-lan']}, over the WAN {of_line['nginx-wan']}. (500 crops/s of "
            "14 Mb each, as much as was moved for one in 2005, are 7 Gb/s: the 50 nodes had more "
            "than one line of 600 Mb/s, or caches.)",
        ]
    )  # fmt: skip


def filled(share: float) -> str:
    """How much of a line is used; what is in flight at the ends of a window makes it inexact."""
    return "all of the line" if share > 0.9 else f"{100 * share:.0f} % of the line"


def several_hosts(found: Found) -> str:
    """Two hosts with clients, one of which has a wrong clock."""
    opened, closed = found.studies["hosts"]
    set_s = float(opened.circumstances["ahead_s"])
    rows = []
    for study in (opened, closed):
        clocks = study.circumstances["clocks"]
        for host in sorted(clocks, key=lambda name: float(clocks[name]["offset_s"])):
            ahead_s = set_s if float(clocks[host]["offset_s"]) > set_s / 2 > 0 else 0.0
            values = (ahead_s, clocks[host]["offset_s"], clocks[host]["spread_s"])
            # No minus before nothing.
            cells = [f"{round(1e3 * float(value), 2) + 0.0:,.2f}" for value in values]
            rows.append([str(study.table["target"][0]), host, *cells])
    alone = found.closed()["nginx-lan"]
    paced, most = (found.ramps("hosts")[at] for at in (0, 1))
    told = opened.circumstances
    clock = "has a right clock, since libfaketime is not installed"
    if set_s:
        clock = f"has a clock that is {set_s:g} s ahead (libfaketime)"
    return "\n\n".join(
        [
            "## Clients on several hosts",
            "Two processes stand in for hosts that were lent with `swathe bench join`, half of the "
            "clients on each. Both are on this machine, so they add no power. One is 56 ms away "
            f"(the proxy) and {clock}.",
            markdown(
                ["target", "host", "clock ahead of ours, ms: set", "estimated", "to within"], rows
            ),
            f"At a rate, from local files: at most {float(told['most_missed']):.0f} of "
            f"{told['most_due']} requests due in a window of "
            f"{1e3 * float(opened.settings['window_s']):.0f} ms are counted in "
            f"another, and {paced['failed'] + paced['unsent']} of all failed or were not sent. "
            f"Each asking when answered, over the LAN: at most {most['peak']:,.0f} crops/s with "
            f"{most['peak_clients']} clients, and {alone['peak']:,.0f} with "
            f"{alone['peak_clients']} where all are of one host (above).",
            "![Clients of two hosts at a rate](hosts-1-ramp-1.png) "
            "![the same as fast as they can, over the LAN](hosts-2-ramp-1.png)",
        ]
    )


def region_sizes(found: Found) -> str:
    """The three tables of 2005, then ours."""
    head = ["store", "regions/s", "CPU %", "least Mb/s", "seen Mb/s", "whole-image Mb/s",
            "copy Mb/s"]  # fmt: skip
    then = [
        [f"2005: {store}", *(" / ".join(f"{row[at]:g}" for row in sizes) for at in range(5)),
         f"{sizes[0][5]}"]
        for store, sizes in REGIONS_2005.items()
    ]  # fmt: skip
    names = ("regions", "cpu", "least", "seen", "whole_image")
    now = []
    for way in ("one", "many"):
        table = found.regions(way)
        for store in dict.fromkeys(map(str, table["store"])):
            mine = table[table["store"] == store]
            label = "one at a time" if way == "one" else "as a list"
            cells = [" / ".join(f"{value:.3g}" for value in mine[name]) for name in names]
            now.append([f"{store}, {label}", *cells, f"{mine['copy'][0]:.0f}"])
    one = found.regions("one")
    hundred = one[one["region"] == 100]
    shares = {str(row["store"]): float(row["of_image"]) for row in hundred}
    listed = ", ".join(f"{name} {share:.2g} %" for name, share in shares.items())
    many = found.regions("many")
    listed_wan = many[(many["store"] == "nginx-wan") & (many["region"] == 100)]["regions"][0]
    return "\n\n".join(
        [
            "## Region size",
            "Regions of 10 x 10 / 100 x 100 / 1000 x 1000 pixels, one client. Seen: bytes that the "
            "proxy passed on to the client, of local files what the kernel says was read. CPU is "
            "of the client, of all cores.",
            markdown(head, [*then, *now]),
            "![What was moved, and regions a second](region-1-regions.png)",
            f"Of 100 x 100 pixels a client has {found.region('nginx-lan', 'regions'):.3g} "
            "regions/s over a LAN of the same speed, asked for one at a time, where GPFS had 11.6 "
            f"and NFS 12.0, and {found.region('nginx-wan', 'regions'):.3g} over the WAN "
            f"({listed_wan:.3g} as a list), where GPFS had 1.1. Of 1000 x 1000, of which there is "
            f"less to leave out, {found.region('nginx-lan', 'regions', 1000):.3g} instead of 6.1, "
            f"3.1 and, over the WAN, {found.region('nginx-wan', 'regions', 1000):.3g} instead of "
            "0.8.",
            "Then 30 to 60 % of an image was moved for a region of 100 x 100 pixels, of which "
            f"under 1 % was needed (rows across, 0.3 %); now: {listed}, headers included.",
        ]
    )


def loads(found: Found) -> str:
    """What ran out."""
    (study,) = found.studies["load"]
    return "\n\n".join(
        [
            "## Load",
            "Light: 98 % cuts of 100 x 100 pixels; heavy: 80 % medians of 20 cuts of 1000 x 1000. "
            "More and more processes; the host over time.",
            markdown_table(study.table),
            "\n".join(f"- {sentence}" for sentence in study.sentences),
            "![The host under the heavy load](load-1-load-2-heavy.png)",
        ]
    )


def read_buffers(found: Found) -> str:
    """The read-buffer study."""
    (study,) = found.studies["buffer"]
    rows = study.table[study.table["within"]]
    stores = [str(store) for store in rows["store"]]
    chosen = [int(rows["buffer"][stores.index(store)]) for store in dict.fromkeys(stores)]
    return "\n\n".join(
        [
            "## Read buffer",
            "2007: best 130,000 to 290,000 bytes local, 150,000 to 300,000 remote; 200,000 "
            "proposed.",
            "\n".join(f"- {sentence}" for sentence in study.sentences),
            "![Time against size of the buffer, local](buffer-1-buffer-1.png) "
            "![the same over the WAN](buffer-1-buffer-3.png)",
            "The smallest good buffer is now "
            f"{size_text(min(chosen))} to {size_text(max(chosen))}, by store"
            + (
                ": no one size serves all, so it is measured for each (`swathe probe`)."
                if max(chosen) >= 4 * min(chosen)
                else "."
            ),
        ]
    )


def conclusions(found: Found) -> str:
    """Whether what was concluded in 2005 still holds."""

    def times(over: tuple[str, str, int, str], under: tuple[str, str, int, str]) -> float:
        return found.crop_ms(*over) / found.crop_ms(*under)

    gz_c = times(("local", "GZ", 1, "cfitsio"), ("local", "FIT", 1, "cfitsio"))
    gz_new = times(("local", "GZ", 1, "swathe"), ("local", "FIT", 1, "swathe"))
    gz_known = times(("local", "GZ", 1, "swathe-indexed"), ("local", "FIT", 1, "swathe-indexed"))
    gz_wan = times(("nginx-wan", "GZ", 1, "swathe"), ("nginx-wan", "FIT", 1, "swathe"))
    gz_wan_known, fz_wan_known = (
        times(("nginx-wan", method, 1, "swathe-indexed"), ("nginx-wan", "FIT", 1, "swathe-indexed"))
        for method in ("GZ", "fz")
    )
    astropy = times(("local", "FIT", 1, "astropy"), ("local", "FIT", 1, "cfitsio"))
    ours = times(("local", "FIT", 1, "swathe"), ("local", "FIT", 1, "cfitsio"))
    ours_gz = times(("local", "GZ", 10, "cfitsio"), ("local", "GZ", 10, "swathe"))
    lan = times(("nginx-lan", "FIT", 1, "swathe"), ("local", "FIT", 1, "swathe"))
    wan = times(("nginx-wan", "FIT", 1, "swathe"), ("local", "FIT", 1, "swathe"))
    closed = found.closed()
    peaks = {name: closed[name]["peak"] for name in ("local", "nginx-lan", "nginx-wan")}
    most = ", ".join(
        f"{closed[name]['peak']:,.0f} crops/s {where} (with {closed[name]['peak_clients']} clients)"
        for name, where in (
            ("local", "local"),
            ("nginx-lan", "over the LAN"),
            ("nginx-wan", "over the WAN"),
        )
    )
    return "\n".join(
        [
            "## Do the conclusions of 2005 still hold?",
            "",
            f"- **Avoid gzip at all costs.** {held(gz_c, gz_known)} Inflating whole files, as "
            f"cfitsio does, makes a crop {gz_c:.3g} times as long as from a plain file. The first "
            f"crop of a file by swathe takes {gz_new:.3g} times as long, since it is inflated up "
            f"to the rows once; once seek points are kept {gz_known:.3g} times. Over the WAN, "
            "where round trips and bytes count, the first crop of a `.gz` takes "
            f"{gz_wan:.3g} times as long as that of a plain file, and {gz_wan_known:.3g} times "
            f"once both are known ({fz_wan_known:.3g} times from tile compression).",
            f"- **C is faster than Java.** The language of the caller {matters(ours)}: against C "
            f"with cfitsio a crop by swathe from Python takes {ours:.2g} times as long from plain "
            f"files and is {ours_gz:.3g} times as fast from gzip (10 crops an image); astropy, "
            f"Python down to the rows, takes {astropy:.3g} times as long. In 2005 Java took 1.6 "
            "times as long as C.",
            f"- **Local disks beat shared storage.** {'Still so' if lan > 1 else 'No more'}: one "
            f"crop over the LAN takes {lan:.3g} times as long as from local files, over the WAN "
            f"{wan:.3g} times (in 2005 about 4 times over NFS or GPFS and, at 1.1 regions/s, 36 "
            "times over the WAN: disks have become memory since, round trips are what they were). "
            f"Many clients make at most {most}: local files serve "
            f"{peaks['local'] / peaks['nginx-lan']:.3g} times as many as the LAN and "
            f"{peaks['local'] / peaks['nginx-wan']:.3g} times as many as the WAN. So with many "
            f"clients their lead {grows(lan, peaks['local'] / peaks['nginx-lan'])} over the LAN "
            f"and {grows(wan, peaks['local'] / peaks['nginx-wan'])} over the WAN.",
            "",
            "Predictions (180.57 s for 197.40 s) are measured by `make bench-plan`, "
            "and today's readers by `make bench`: [benchmarks.md](../benchmarks.md). Striped "
            "servers (DPSS) are not part of Swathe yet.",
        ]
    )


def held(gz_c: float, gz_known: float) -> str:
    """Whether gzip is still to be avoided."""
    if gz_known < min(5.0, gz_c / 3):
        return "No longer, if the reader keeps seek points."
    return "Still so." if gz_known > 0.7 * gz_c else "Less than it was."


def grows(one: float, many: float) -> str:
    """Whether a store is further behind with many clients than with one."""
    return "grows" if many > one else "shrinks"


def matters(ours: float) -> str:
    """Whether it matters which language is called from."""
    return "no longer decides" if ours < np.sqrt(1.6) else "still counts"
