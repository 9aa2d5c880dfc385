"""A real XRootD whose objects are on tape: its plug-in for prepare calls scripts of this file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.servers import free_port, run_server

CONFIG = """
xrd.port {port}
all.export /data stage r/w check
oss.localroot {place}/disk
oss.remoteroot {place}/tape
all.adminpath {place}/admin
all.pidpath {place}/run
oss.msscmd {place}/mss.sh
ofs.preplib libXrdOfsPrepGPI.so -admit stage,query,evict,cancel -run {place}/prep.sh
oss.xfr deny 5
"""
MSS = """#!/bin/sh
# statx PATH: what tape has.
for last; do :; done
path={place}/tape${{last#{place}/tape}}
if [ -f "$path" ]; then
    echo 0
    echo "- rw-r--r-- 1 $(stat -c '%u %g %X %Z %Y %s %o %b' "$path")"
else
    echo 2
fi
"""
PREP = """#!/bin/sh
# [options] -- REQUEST ACTION PATH...: {place}/hold makes it do nothing.
echo "$@" >> {place}/calls
while [ "$1" != -- ]; do shift; done
request=$2 action=$3
shift 3
[ -e {place}/hold ] && [ $action = stage ] && exit 0
for path; do
    path=${{path%%\\?*}}
    case $action in
    stage) mkdir -p "$(dirname "{place}/disk$path")"; cp "{place}/tape$path" "{place}/disk$path";;
    evict) rm -f "{place}/disk$path";;
    esac
done
[ $action = query ] && cat {place}/answer
exit 0
"""


@dataclass(frozen=True)
class TapeServer:
    """A running XRootD.

    Attributes:
        url: its root URL.
        folder: folder with `tape/data` and `disk/data`; a file `hold` stops staging, `answer` is
            what a query says, `calls` has the calls of the plug-in.
    """

    url: str
    folder: Path


def as_daemon(place: Path) -> list[str]:
    """Make the servers' user the owner of a folder; return the words before a command of that user.

    XRootD and its File Residency Manager refuse to run as root.
    """
    if os.geteuid() != 0:
        return []
    for path in (place, *place.rglob("*")):
        shutil.chown(path, "daemon")
    return ["setpriv", "--reuid=daemon", "--regid=daemon", "--clear-groups"]


@contextmanager
def xrootd_tape() -> Iterator[TapeServer]:
    """Run XRootD with its plug-in for prepare over empty folders."""
    program = shutil.which("xrootd")
    if program is None or not shutil.which("xrdfs"):
        pytest.skip("xrootd-server and xrootd-client are not installed")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="swathe-test-tape-") as name:
        place = Path(name)
        for folder in ("disk/data", "tape/data", "admin", "run"):
            (place / folder).mkdir(parents=True)
        (place / "answer").touch()
        for script, text in (("mss.sh", MSS), ("prep.sh", PREP)):
            (place / script).write_text(text.format(place=place))
            (place / script).chmod(0o755)
        (place / "x.cfg").write_text(CONFIG.format(place=place, port=port))
        command = [*as_daemon(place), program, "-n", "tape", "-c", str(place / "x.cfg")]
        with run_server(command, place, port):
            yield TapeServer(f"root://127.0.0.1:{port}//data", place)
