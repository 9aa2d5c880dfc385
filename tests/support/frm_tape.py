"""A real XRootD cluster whose objects are on tape, brought to disk by its File Residency Manager.

`prepare` goes to the redirector, from its cmsd to that of the data server, and there into the queue
of `frm_xfrd`, which calls a script for each object. `frm_purged` removes objects from disk.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.servers import END_S, free_port, run_server
from tests.support.xrootd_tape import MSS, as_daemon

COMMON = """
all.export /data stage r/w nocheck purge
all.adminpath {place}/admin
all.pidpath {place}/run
all.manager 127.0.0.1:{cluster_port}
"""
# Short waits for a cluster of one server.
MANAGER = """
all.role manager
cms.delay startup 1 servers 1 lookup 1 full 1 suspend 1
if exec cmsd
xrd.port {cluster_port}
else
xrd.port {port}
fi
"""
DATA_SERVER = """
all.role server
xrd.port {data_port}
oss.localroot {place}/disk
oss.remoteroot {place}/tape
oss.msscmd {place}/mss.sh
oss.xfr deny 5
cms.prep echo
frm.xfr.copycmd in {place}/copy.sh $RFN $PFN
frm.xfr.copymax 2
frm.xfr.qcheck 1
"""
COPY = """#!/bin/sh
# TAPE DISK: {place}/broken makes it fail.
[ -e {place}/broken ] && {{ echo 'tape T1 is broken' >&2; exit 3; }}
cp "$1" "$2"
"""
PROGRAMS = ("xrootd", "cmsd", "frm_xfrd", "frm_purged", "xrdfs")


@dataclass(frozen=True)
class FrmCluster:
    """A running cluster: a redirector and a data server.

    Attributes:
        url: root URL of the redirector.
        data_url: root URL of the data server.
        folder: folder with `tape/data` and `disk/data`; a file `broken` makes copies fail.
    """

    url: str
    data_url: str
    folder: Path
    start: list[str]
    data_server: ExitStack

    @contextmanager
    def transfers(self) -> Iterator[None]:
        """Run the daemon that copies objects from tape."""
        with run_server(self._daemon("frm_xfrd"), self.folder / "logs/frm_xfrd"):
            yield

    def purge(self) -> None:
        """Run one cycle of the daemon that removes from disk what is on tape, short of room."""
        command = [*self._daemon("frm_purged"), "-O", "999t,0"]
        subprocess.run(command, cwd=self.folder, capture_output=True, timeout=60, check=True)

    def stop_data_server(self) -> None:
        """End the data server; the redirector remains."""
        self.data_server.close()

    def _daemon(self, name: str) -> list[str]:
        return [*self.start, name, "-n", "data", "-c", str(self.folder / "data.cfg")]


def wait_for_text(log: Path, text: str) -> None:
    """Return once a server has said something."""
    until = time.monotonic() + END_S
    while text not in log.read_text():
        assert time.monotonic() < until, log.read_text()[-2000:]
        time.sleep(0.02)


@contextmanager
def frm_cluster() -> Iterator[FrmCluster]:
    """Run a cluster over empty folders, without the daemon that copies."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        pytest.skip(f"{', '.join(missing)}: not installed (xrootd-server, xrootd-client)")
    port, cluster_port, data_port = free_port(), free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="swathe-test-frm-") as name, ExitStack() as servers:
        place = Path(name)
        settings = {"place": place, "port": port, "cluster_port": cluster_port}
        settings["data_port"] = data_port
        logs = [f"logs/{each}" for each in ("manager", "redirector", "cmsd", "data", "frm_xfrd")]
        for folder in ("disk/data", "tape/data", "admin", "run", *logs):
            (place / folder).mkdir(parents=True)
        for script, text in (("mss.sh", MSS), ("copy.sh", COPY)):
            (place / script).write_text(text.format(place=place))
            (place / script).chmod(0o755)
        for config, text in (("redirector.cfg", MANAGER), ("data.cfg", DATA_SERVER)):
            (place / config).write_text((COMMON + text).format(**settings))
        start = as_daemon(place)
        data_server = servers.enter_context(ExitStack())
        for log, program, config, *ports in (
            ("manager", "cmsd", "redirector", cluster_port),
            ("redirector", "xrootd", "redirector", port),
            ("cmsd", "cmsd", "data"),
            ("data", "xrootd", "data", data_port),
        ):
            command = [*start, program, "-n", config, "-c", str(place / f"{config}.cfg")]
            part = data_server if config == "data" else servers
            part.enter_context(run_server(command, place / "logs" / log, *ports))
        # A client that comes before that is told to wait for 10 s.
        wait_for_text(place / "logs/manager/server.log", "Status changed to active")
        root = "root://127.0.0.1:{}//data"
        yield FrmCluster(root.format(port), root.format(data_port), place, start, data_server)
