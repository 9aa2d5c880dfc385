"""The block server: disks of this machine as a store for others."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from swathe import _swathe
from swathe.core.errors import SettingsError
from swathe.core.host import in_url, is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


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
