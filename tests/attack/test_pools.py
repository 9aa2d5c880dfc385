"""Strangers at a pool: other users of the machine, and whoever has no certificate of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swathe.core.errors import SettingsError
from swathe.core.paths import state_folder
from swathe.workers.dask.certificates import make_certificates
from swathe.workers.dask.tls import certificate_folder, read_address, security_for
from tests.support.pools import Process, command, environment, pool_of

NOBODY = 65534
HERE = read_address("dask://127.0.0.1:8786")

CALL = """
import asyncio, os, sys
from distributed import rpc
from distributed.comm.core import connect
from distributed.protocol.pickle import dumps
from distributed.security import Security

url, operation, folder, uid = sys.argv[1:]
security = None
if folder:
    files = [os.path.join(folder, name) for name in ("ca.pem", "portal.pem", "portal.key")]
    security = Security(require_encryption=True, **dict(zip(
        ("tls_ca_file", "tls_client_cert", "tls_client_key"), files, strict=True)))

async def call():
    given = {} if security is None else security.get_connection_args("client")
    comm = await connect(url, timeout=5, **given)
    function = {"function": dumps(os.getuid), "args": dumps(()), "kwargs": dumps({})}
    await comm.write({"op": operation, "reply": True, **function})
    return await comm.read()

if int(uid):
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
try:
    print("ran:", asyncio.run(asyncio.wait_for(call(), 30)))
except Exception as error:
    print("refused:", type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[tuple[Process, Process]]:
    """A scheduler and a worker, begun without a word about certificates."""
    with pool_of(1) as (scheduler, [worker]):
        yield scheduler, worker


def own_folder(scheduler: Process) -> Path:
    folder = certificate_folder(read_address(scheduler.address), None)
    assert folder is not None
    return folder


def called(address: str, operation: str, folder: Path | None, uid: int = 0) -> str:
    """Have a process of a pool run a function of ours, and give what came of it."""
    words = [address, operation, str(folder or ""), str(uid)]
    done = subprocess.run(
        [sys.executable, "-c", CALL, *words], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def doors(pool: tuple[Process, Process]) -> list[tuple[str, str]]:
    """What runs a function that is sent: of the scheduler, and of the worker."""
    scheduler, worker = pool
    return [(scheduler.address, "run_function"), (worker.address, "run")]


def test_who_has_the_certificates_runs_code(pool: tuple[Process, Process]) -> None:
    """So that what follows is refused for lack of them, and for nothing else."""
    for address, operation in doors(pool):
        answer = called(address, operation, own_folder(pool[0]))
        assert answer.startswith("ran:"), answer
        assert "OK" in answer


def test_plain_connections_are_refused(pool: tuple[Process, Process]) -> None:
    for address, operation in doors(pool):
        plain = address.replace("tls://", "tcp://")
        assert called(plain, operation, None).startswith("refused:")


def test_certificates_of_another_authority_are_refused(
    pool: tuple[Process, Process], tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign"
    make_certificates(foreign)
    # Signed by another, and trusting the pool: it is the pool that must refuse.
    (foreign / "ca.pem").write_bytes((own_folder(pool[0]) / "ca.pem").read_bytes())
    for address, operation in doors(pool):
        assert called(address, operation, foreign).startswith("refused:")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_of_the_machine_is_refused(pool: tuple[Process, Process]) -> None:
    for address, operation in doors(pool):
        plain = address.replace("tls://", "tcp://")
        assert called(plain, operation, None, NOBODY).startswith("refused:")
        answer = called(address, operation, own_folder(pool[0]), NOBODY)
        assert answer.startswith("refused: PermissionError"), answer


def test_folders_are_for_their_owner_and_go_with_a_free_port() -> None:
    with pool_of(0) as (scheduler, _):
        folder = own_folder(scheduler)
        for each in (folder.parent, folder):
            assert each.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert not folder.exists()


# ---- The folder


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, empty."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return state_folder()


def test_all_roles_find_the_same_certificates(state: Path) -> None:
    seen = {
        security_for(HERE, None, role).tls_ca_file  # type: ignore[union-attr]  # on loopback
        for role in ("worker", "portal", "scheduler")
    }
    assert seen == {str(state / "pools" / "loopback-8786" / "ca.pem")}
    assert [path.name for path in (state / "pools").iterdir()] == ["loopback-8786"]


def test_a_scheduler_renews_what_is_no_longer_good(state: Path) -> None:
    old = state / "pools" / "loopback-8786"
    old.parent.mkdir(mode=0o700, parents=True)
    make_certificates(old, -1)
    with pytest.raises(SettingsError, match="valid only from"):
        security_for(HERE, None, "worker")
    assert security_for(HERE, None, "scheduler") is not None
    assert security_for(HERE, None, "worker") is not None


@pytest.mark.parametrize("name", ["pools", "pools/loopback-8786"])
@pytest.mark.parametrize("mode", [0o750, 0o705, 0o777])
def test_a_folder_that_others_may_enter_is_refused(state: Path, name: str, mode: int) -> None:
    security_for(HERE, None, "scheduler")
    (state / name).chmod(mode)
    with pytest.raises(SettingsError, match=f"expected mode 700, found {mode:o}"):
        security_for(HERE, None, "portal")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", ["pools", "pools/loopback-8786"])
def test_a_folder_of_another_user_is_refused(state: Path, name: str) -> None:
    security_for(HERE, None, "scheduler")
    os.chown(state / name, NOBODY, NOBODY)
    with pytest.raises(
        SettingsError, match="expected a folder of your own, found one of another user"
    ):
        security_for(HERE, None, "worker")


def test_a_link_in_place_of_the_folder_is_refused(state: Path, tmp_path: Path) -> None:
    security_for(HERE, None, "scheduler")
    folder = state / "pools" / "loopback-8786"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SettingsError, match="expected a folder of your own"):
        security_for(HERE, None, "worker")


@pytest.mark.parametrize(
    ("name", "mode", "message"),
    [
        ("worker.key", 0o640, "other users can read it"),
        ("worker.key", 0o604, "other users can read it"),
        ("ca.pem", 0o664, "other users can change it"),
        (".", 0o777, "other users can change it"),
    ],
)
def test_files_that_others_may_read_or_change_are_refused(
    tmp_path: Path, name: str, mode: int, message: str
) -> None:
    folder = tmp_path / "certificates"
    make_certificates(folder)
    (folder / name).chmod(mode)
    with pytest.raises(SettingsError, match=message):
        security_for(HERE, folder, "worker")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_key_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    make_certificates(folder)
    os.chown(folder / "worker.key", NOBODY, NOBODY)
    with pytest.raises(SettingsError, match="expected a file of user 0, found one of user 65534"):
        security_for(HERE, folder, "worker")


def test_where_none_can_be_made_it_is_said(state: Path) -> None:
    state.parent.mkdir()
    state.write_text("a file")
    with pytest.raises(SettingsError, match="cannot create certificates: Not a directory"):
        security_for(HERE, None, "worker")


# ---- Without


def test_insecure_must_be_typed_and_is_warned_of() -> None:
    with pytest.raises(SettingsError, match="type --insecure"):
        security_for(read_address("tcp://127.0.0.1:8786"), None, "worker")
    with pytest.raises(SettingsError, match="certificates or --insecure, found both"):
        security_for(HERE, Path("somewhere"), "worker", insecure=True)
    assert security_for(HERE, None, "worker", insecure=True) is None


@pytest.mark.parametrize(
    ("host", "who"),
    [("127.0.0.1", "every user of this machine"), ("0.0.0.0", "WHOEVER REACHES IT")],
)
def test_a_scheduler_without_certificates_warns(host: str, who: str) -> None:
    words = command("scheduler", "--host", host, "--port", "0", "--insecure")
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as made:
        try:
            assert made.stdout is not None
            assert made.stderr is not None
            assert f"--insecure: {who} can run code as you" in made.stderr.readline()
            assert made.stdout.readline().startswith("scheduler: tcp://")
        finally:
            made.terminate()


def test_beyond_loopback_none_are_made(state: Path) -> None:
    with pytest.raises(SettingsError, match="beyond loopback, a pool needs certificates"):
        security_for(read_address("dask://10.1.2.3:8786"), None, "scheduler")
    assert not state.exists()
