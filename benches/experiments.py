"""The experiments of `swathe bench` on this machine, as in the studies of 2005 and 2007.

    python benches/experiments.py [--smoke] [--only RUN]

Settings are in experiments.toml; made here are the stores: a local folder, and behind the proxy of
the tests nginx as on a LAN (1 ms, 600 Mb/s) and a WAN (56 ms, 160 Mb/s), XRootD and S3 (1 ms, 600
Mb/s), the links of 2005; each is probed first. `wide:` is striped over five nginx, one of them of
parity, that have 600 Mb/s together (1 ms). Also a portal, and two processes that join a ramp as two
hosts do. One of them is 56 ms away, and its clock is 3.2 s ahead if libfaketime is installed. The
run `records` is an application that parses records into memory (records.py). Results of each run go
to build/bench/experiments/RUN; docs/experiments/README.md has them beside those of 2005.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import links
import swathe
from harness import BUILD, HERE, options, running, survey
from portal import PORTAL, register
from records import make_events
from stripe_lab import PROBE, RTT_MS, declare_stripe, serve_folders
from tests.support import servers
from tests.support.clocks import wrong_by

LAN, WAN = 75_000_000, 20_000_000
LINKS = (
    links.Link("nginx", 1, LAN, label="nginx-lan"),
    links.Link("nginx", 56, WAN, label="nginx-wan"),
    links.Link("xrootd", 1, LAN, label="xrootd-lan"),
    links.Link("s3s-fs", 1, LAN, label="s3-lan"),
)
HOSTS = ("--listen", "--hosts", "2")
WORKERS = ("1", "4", "16", "32", "48", "64", "96", "128")
WAN_CLIENTS = ("--mix", "light", *(word for count in WORKERS for word in ("--workers", count)))
LOCAL, WIDE, RECORDS = "local", "wide", "records"
ALL = (LOCAL, *(link.id for link in LINKS))
WITH_WIDE = (*ALL, WIDE)
WIDE_SERVERS = 5
EVENTS = "events.dat"
RUNS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "single": (WITH_WIDE, ()),
    "region": (WITH_WIDE, ()),
    "ramp": (WITH_WIDE, ()),
    "ramp-portal": ((), ("--portal", "--kind", "thread")),
    # Two thirds of what clients get that wait for their answers.
    "ramp-open": ((LOCAL,), ("--model", "open", "--rate", "50")),
    "ramp-hosts": (("nginx-lan",), HOSTS),
    "ramp-hosts-open": ((LOCAL,), ("--model", "open", "--rate", "5", *HOSTS)),
    "load": ((LOCAL, "nginx-lan"), ()),
    "load-wan": (("nginx-wan",), WAN_CLIENTS),
    "buffer": (ALL, ()),
    RECORDS: ((LOCAL, "nginx-lan", WIDE), ()),
}
"""Of each run its stores and the flags that are not in the file; its name begins as the section."""
AHEAD_S, FAR_MS = 3.2, 56


def bench(run: str, file: Path, there: Sequence[str], portal: str) -> None:
    """Run an experiment with those of its stores that are there."""
    name, (stores, flags) = run.partition("-")[0], RUNS[run]
    frame = ":frame-000001.fit" if name == "buffer" else ""
    words = [word for store in stores if store in there for word in ("--store", f"{store}{frame}")]
    address = f"127.0.0.1:{servers.free_port()}"
    for flag in flags:
        words += [flag, *{"--portal": [portal], "--listen": [address]}.get(flag, [])]
    command = [sys.executable, "-m", "swathe.cli", "bench"]
    output = BUILD / "experiments" / run
    leading = [*command, name, str(file), "--output", str(output), "--overwrite", *words]
    print(f"\n{run}", flush=True)
    with ExitStack() as stack:
        leader = stack.enter_context(subprocess.Popen(leading, stderr=subprocess.PIPE, text=True))
        assert leader.stderr is not None
        for line in leader.stderr:
            print(line, end="", file=sys.stderr, flush=True)
            if line.startswith("waiting for"):
                far = stack.enter_context(servers.proxy(f"http://{address}", rtt_ms=FAR_MS))
                # They learn the stores from the leader.
                variables = {**os.environ, "SWATHE_DATABASE": f"sqlite:///{links.FOLDER}/none"}
                for where, clock in ((address, {}), (far.host, wrong_by(AHEAD_S) or {})):
                    joining = [*command, "join", where]
                    stack.enter_context(subprocess.Popen(joining, env=variables | clock))
    if leader.returncode:
        raise SystemExit(f"{run}: swathe bench ended with {leader.returncode}")


@contextmanager
def wide(files: Path, count: int) -> Iterator[None]:
    """Copy the files to `wide:`, over servers that have the bandwidth of the LAN together."""
    with ExitStack() as stack:
        roots, folders = serve_folders([LAN // count] * count, stack)
        declare_stripe([str(folder) for folder in folders])
        sources = [str(path) for path in sorted(files.iterdir())]
        report = swathe.stores.copy_objects(sources, f"{WIDE}:", progress=False)
        if report.faults:
            raise SystemExit(f"{WIDE}: {report.faults[0].reason}")
        declare_stripe(roots)
        for number in range(count):
            links.probe(links.Link("nginx", RTT_MS, label=f"disk{number}"), PROBE, quick=True)
        yield


def parse_records(there: Sequence[str]) -> None:
    """Run the application over each store that is there, and write what it says to its folder."""
    print(f"\n{RECORDS}", flush=True)
    rows = []
    for store in RUNS[RECORDS][0]:
        if store in there:
            command = [sys.executable, str(HERE / "records.py"), "read", f"{store}:{EVENTS}"]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            row = json.loads(done.stdout)
            rows.append(row)
            print(
                f"{store}: {row['bytes'] / 1e6:.0f} MB, {row['events']} events: read "
                f"{row['read_mb_per_s']:.1f} MB/s, into memory {row['application_mb_per_s']:.1f} "
                f"MB/s, CPU {row['cpu_s']:.2f} s",
                flush=True,
            )
    if len({(row["events"], row["momentum"]) for row in rows}) > 1:
        raise SystemExit(f"{RECORDS}: expected the same events of all stores, found {rows}")
    folder = BUILD / "experiments" / RECORDS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(rows, indent=1) + "\n")


def main() -> None:
    """Make the stores, and run what is asked for."""
    arguments = options(__doc__, list(RUNS)).parse_args()
    frames = 3 if arguments.smoke else 20
    file = HERE / ("experiments-smoke.toml" if arguments.smoke else "experiments.toml")
    sample, used = survey(frames), links.FOLDER / "frames"
    with ExitStack() as stack:
        stack.enter_context(links.work())
        used.mkdir()
        for path in sorted(sample.glob("frame-*")):
            # No link: a portal does not follow those that lead out of a store.
            shutil.copy(path, used / path.name)
        settings = register(links.FOLDER, used, LOCAL)
        runs = arguments.only or list(RUNS)
        if RECORDS in runs:
            make_events(str(used / EVENTS), (4 if arguments.smoke else 400) * 1_000_000)
        portal, _ = stack.enter_context(running(*PORTAL, str(settings)))
        remote = links.installed_links(LINKS[:1] if arguments.smoke else LINKS)
        for link in remote:
            stack.enter_context(links.reach(link, used))
            links.probe(link, quick=True)
        there = [LOCAL, *(link.id for link in remote)]
        if remote and any(WIDE in RUNS[run][0] for run in runs):
            stack.enter_context(wide(used, 3 if arguments.smoke else WIDE_SERVERS))
            there.append(WIDE)
        for run in runs:
            if run == RECORDS:
                parse_records(there)
            else:
                bench(run, file, there, portal)


if __name__ == "__main__":
    main()
