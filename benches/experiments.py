"""The experiments of `swathe bench` on this machine, as in the studies of 2005 and 2007.

    python benches/experiments.py [--smoke] [--only RUN]

Settings are in experiments.toml; made here are the stores: a local folder, and behind the proxy of
the tests nginx as on a LAN (1 ms, 600 Mb/s) and a WAN (56 ms, 160 Mb/s), XRootD and S3 (1 ms,
600 Mb/s), the links of 2005; each is probed first. Also a portal, and two processes that join a
ramp as two hosts do. One of them is 56 ms away, and its clock is 3.2 s ahead if libfaketime is
installed. Results of each run go to build/bench/experiments/RUN; docs/experiments/README.md has
them beside those of 2005.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import links
from harness import BUILD, HERE, options, running, survey
from portal import PORTAL, register
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
LOCAL = "local"
ALL = (LOCAL, *(link.id for link in LINKS))
RUNS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "single": (ALL, ()),
    "region": (ALL, ()),
    "ramp": (ALL, ()),
    "ramp-portal": ((), ("--portal", "--kind", "thread")),
    # Two thirds of what clients get that wait for their answers.
    "ramp-open": ((LOCAL,), ("--model", "open", "--rate", "50")),
    "ramp-hosts": (("nginx-lan",), HOSTS),
    "ramp-hosts-open": ((LOCAL,), ("--model", "open", "--rate", "5", *HOSTS)),
    "load": ((LOCAL, "nginx-lan"), ()),
    "load-wan": (("nginx-wan",), WAN_CLIENTS),
    "buffer": (ALL, ()),
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
        portal, _ = stack.enter_context(running(*PORTAL, str(settings)))
        remote = links.installed_links(LINKS[:1] if arguments.smoke else LINKS)
        for link in remote:
            stack.enter_context(links.reach(link, used))
            links.probe(link, quick=True)
        for run in arguments.only or RUNS:
            bench(run, file, [LOCAL, *(link.id for link in remote)], portal)


if __name__ == "__main__":
    main()
