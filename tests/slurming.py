"""One machine's real Slurm for the tests: without systemd, in a folder, on free ports."""

from __future__ import annotations

import getpass
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from servers import free_port

PATIENCE_S = 120.0
CPUS = 6
PATHS = "/usr/sbin:/sbin"
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,sched_min_interval=0
ReturnToService=2
SwitchType=switch/none
MpiDefault=none
KillWait=10
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=work Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def slurm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A controller and a node, and munge; `sbatch` and the like of this process find them."""
    path = f"{os.environ.get('PATH', '')}:{PATHS}"
    for name in ("munged", "slurmctld", "slurmd", "sbatch"):
        if shutil.which(name, path=path) is None:
            pytest.skip(f"{name} is not installed: slurm-wlm and munge of Debian")
    (folder / "state").mkdir(parents=True)
    (folder / "spool").mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    conf = folder / "slurm.conf"
    conf.write_text(
        CONF.format(
            folder=folder,
            host=platform.node().partition(".")[0],
            user=getpass.getuser(),
            controller=free_port(),
            node=free_port(),
            cpus=CPUS,
        )
    )
    monkeypatch.setenv("SLURM_CONF", str(conf))
    files = {each: folder / f"munge.{each}" for each in ("socket", "pid", "log", "seed")}
    munge = ["munged", "--foreground", "--force", "--num-threads=2", f"--key-file={key}"]
    munge += [f"--{name}{'' if name == 'socket' else '-file'}={at}" for name, at in files.items()]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in (munge, ["slurmctld", "-D"], ["slurmd", "-D"]):
            log = (folder / f"{command[0]}.out").open("wb")
            with log:
                started.append(
                    subprocess.Popen(
                        command, stdout=log, stderr=log, env={**os.environ, "PATH": path}
                    )
                )
            if command is munge:
                wait_until_there(files["socket"], folder)
        wait_until_idle(folder)
        yield
        subprocess.run(["scancel", "--me"], check=True, timeout=PATIENCE_S)
        wait_until_none()
    finally:
        for process in reversed(started):
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until_there(path: Path, folder: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < until, logs(folder)
        time.sleep(0.05)


def wait_until_idle(folder: Path) -> None:
    """Wait until the node can take jobs."""
    until = time.monotonic() + PATIENCE_S
    while said(["sinfo", "--noheader", "--format=%T"]) != "idle":
        assert time.monotonic() < until, logs(folder)
        time.sleep(0.1)


def wait_until_none() -> None:
    """Wait until all jobs have ended."""
    until = time.monotonic() + PATIENCE_S
    while left := said(["squeue", "--noheader"]):
        assert time.monotonic() < until, left
        time.sleep(0.1)


def said(command: list[str]) -> str:
    """What one of Slurm's commands says."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return ran.stdout.strip()


def logs(folder: Path) -> str:
    """The last words of all logs."""
    found = [*folder.glob("*.log"), *folder.glob("*.out")]
    return "\n".join(f"{path.name}: {path.read_text()[-1500:]}" for path in found)
