"""The block server: disks of this machine as a store for others."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from swathe import _swathe
from swathe.core.errors import AccessError, NotFoundError, SettingsError, SourceError
from swathe.core.host import in_url, is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from swathe.catalog import Store

TIMES = ("request", "disk_wait", "send_wait", "late")
"""Times of a server, in the names of its metrics: `swathe_server_NAME_seconds_total`."""


@dataclass(frozen=True)
class BlockServerMetrics:
    """Times of a block server since its start, or in an interval; seconds.

    Attributes:
        elapsed_s: time of the reading, or length of the interval.
        request_s: all requests together, from head to last byte.
        disk_wait_s: of this, waiting for disks.
        send_wait_s: of this, waiting until clients take more.
        late_s: time by which the server came late to its work.
        disk_work_s: work by disk.
    """

    elapsed_s: float
    request_s: float
    disk_wait_s: float
    send_wait_s: float
    late_s: float
    disk_work_s: dict[str, float] = field(default_factory=dict)

    def __sub__(self, earlier: BlockServerMetrics) -> BlockServerMetrics:
        return BlockServerMetrics(
            elapsed_s=self.elapsed_s - earlier.elapsed_s,
            request_s=self.request_s - earlier.request_s,
            disk_wait_s=self.disk_wait_s - earlier.disk_wait_s,
            send_wait_s=self.send_wait_s - earlier.send_wait_s,
            late_s=self.late_s - earlier.late_s,
            disk_work_s={
                disk: seconds - earlier.disk_work_s.get(disk, 0.0)
                for disk, seconds in self.disk_work_s.items()
            },
        )


def read_metrics(stores: _swathe.Stores, store: Store) -> BlockServerMetrics | None:
    """Return the times of a block server; `None` if the store is not the root of one.

    Args:
        stores: the engine's stores, with this one.
        store: a store on a server.
    """
    if not store.url.startswith(("dav:", "davs:", "http:", "https:")):
        return None
    try:
        source = stores.open(f"{store.name}:metrics")
        text = source.read(0, source.size).decode("utf-8", "replace")
    except (AccessError, NotFoundError, SourceError):
        return None  # another kind of server, or an old one
    values: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith("swathe_") and value.replace(".", "", 1).isdigit():
            values[name] = float(value)
    totals = {
        f"{name}_s": values[key]
        for name in TIMES
        if (key := f"swathe_server_{name}_seconds_total") in values
    }
    if len(totals) < len(TIMES):
        return None
    begin, end = 'swathe_disk_work_seconds_total{disk="', '"}'
    work = {
        name.removeprefix(begin).removesuffix(end): seconds
        for name, seconds in values.items()
        if name.startswith(begin)
    }
    return BlockServerMetrics(time.perf_counter(), **totals, disk_work_s=work)


def serve_disks(
    disks: list[Path],
    tell: Callable[[str, list[str]], None],
    *,
    host: str = "127.0.0.1",
    port: int = 8430,
    write_token: str | None = None,
    read_token: str | None = None,
    certificate: tuple[Path, Path] | None = None,
    max_bytes: int | None = None,
    forget: list[Path] | None = None,
) -> None:
    """Serve disks until SIGTERM or Ctrl-C; answers that are under way are finished, for up to 10 s.

    Args:
        disks: folders; each object lies on one of them.
        tell: called with the URL, and with warnings, when the server listens.
        host: numeric address to listen on.
        port: port to listen on; 0: any free port.
        write_token: secret of clients that read and write.
        read_token: secret of clients that only read. Without any token all clients may do
            everything; that is refused beyond loopback.
        certificate: files of a certificate and its key, in PEM. With them only TLS is used.
        max_bytes: maximum of the bytes of objects on each disk.
        forget: disks that are given up with what lies on them.

    Raises:
        SettingsError: If a disk, the address or the certificate cannot be used, or a token is
            missing.
    """
    host = "127.0.0.1" if host == "localhost" else host
    if write_token is None and read_token is None and not is_loopback(host):
        raise SettingsError(
            f"{host}: expected a token beyond loopback, found none; give --token-file or "
            "--read-token-file"
        )
    scheme = "http" if certificate is None else "https"

    def tell_url(port: int, notes: list[str]) -> None:
        if certificate is None and not is_loopback(host):
            notes.append(
                "objects and the token are sent in plain text, and swathe sends no token there; "
                "give --tls-cert and --tls-key"
            )
        tell(f"{scheme}://{in_url(host)}:{port}", notes)

    with _ending_on_sigterm():
        try:
            _swathe.serve_disks(
                disks,
                host,
                port,
                tell_url,
                write_token=write_token,
                read_token=read_token,
                certificate=certificate,
                max_bytes=max_bytes,
                forget=forget or [],
            )
        except KeyboardInterrupt:
            return
        except ValueError as error:
            if isinstance(error, SettingsError):
                raise
            raise SettingsError(f"{host}: expected a numeric address, found: {error}") from error


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM, as on Ctrl-C. Only the main thread gets signals."""

    def end(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
