"""A real Slurm on this machine for the tests: without systemd, in a folder, on free ports."""

from __future__ import annotations

import getpass
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.namespaces import Host
from tests.support.servers import free_port

PATIENCE_S = 120.0
CPUS = 6
LOOPBACK = "127.0.0.1"
PATHS = "/usr/sbin:/sbin"
CONF = """
ClusterName=test
SlurmctldHost={host}({address})
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n.spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
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
{nodes}
PartitionName=work Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeAddr={address} CPUs={cpus} RealMemory=1000 State=UNKNOWN"
SLURMD = ["slurmd", "-D"]


@contextmanager
def slurm(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    hosts: Sequence[Host] = (),
    address: str = LOOPBACK,
) -> Iterator[None]:
    """Munge, a controller at an address, and nodes; `sbatch` and the like of this process find it.

    Each of the hosts is a node with room for one worker; without any, this machine is one for six.
    """
    this = platform.node().partition(".")[0]
    nodes = [NODE.format(name=each.name, address=each.address, cpus=1) for each in hosts]
    daemons = {each.name: slurmd_on(each) for each in hosts}
    path = f"{os.environ.get('PATH', '')}:{PATHS}"
    for name in ("munged", "slurmctld", "slurmd", "sbatch"):
        if shutil.which(name, path=path) is None:
            pytest.skip(f"{name} is not installed: slurm-wlm and munge of Debian")
    (folder / "state").mkdir(parents=True)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    conf = folder / "slurm.conf"
    conf.write_text(
        CONF.format(
            folder=folder,
            host=this,
            address=address,
            user=getpass.getuser(),
            controller=free_port(),
            node=free_port(),
            nodes="\n".join(nodes or [NODE.format(name=this, address=LOOPBACK, cpus=CPUS)]),
        )
    )
    monkeypatch.setenv("SLURM_CONF", str(conf))
    files = {each: folder / f"munge.{each}" for each in ("socket", "pid", "log", "seed")}
    munge = ["munged", "--foreground", "--force", "--num-threads=2", f"--key-file={key}"]
    munge += [f"--{name}{'' if name == 'socket' else '-file'}={at}" for name, at in files.items()]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        first = {"munged": munge, "slurmctld": ["slurmctld", "-D"]}
        for name, command in (first | (daemons or {"slurmd": SLURMD})).items():
            log = (folder / f"{name}.out").open("wb")
            with log:
                processes.append(
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
        for process in reversed(processes):
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def slurmd_on(host: Host) -> list[str]:
    """What starts a node on a host, which then has the name that it is known by."""
    # Not by `ip netns exec`: that hides control groups, without which slurmd does not start.
    there = ["nsenter", f"--net=/run/netns/{host.name}", "unshare", "--uts"]
    return [*there, "sh", "-c", 'hostname "$0" && exec "$@"', host.name, *SLURMD]


def wait_until_there(path: Path, folder: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < until, logs(folder)
        time.sleep(0.05)


def wait_until_idle(folder: Path) -> None:
    """Wait until all nodes can take jobs."""
    until = time.monotonic() + PATIENCE_S
    while output_of(["sinfo", "--noheader", "--format=%T"]) != "idle":
        assert time.monotonic() < until, logs(folder)
        time.sleep(0.1)


def wait_until_none() -> None:
    """Wait until all jobs have ended."""
    until = time.monotonic() + PATIENCE_S
    while jobs := output_of(["squeue", "--noheader"]):
        assert time.monotonic() < until, jobs
        time.sleep(0.1)


def output_of(command: list[str]) -> str:
    """What one of Slurm's commands says."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return ran.stdout.strip()


def logs(folder: Path) -> str:
    """The last words of all logs."""
    paths = [*folder.glob("*.log"), *folder.glob("*.out")]
    return "\n".join(f"{path.name}: {path.read_text()[-1500:]}" for path in paths)
