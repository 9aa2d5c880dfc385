"""Running a portal with uvicorn."""

from __future__ import annotations

import gc
import logging
import os
import resource
import socket
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from swathe.core.errors import SettingsError
from swathe.core.host import in_url
from swathe.core.paths import VARIABLE
from swathe.portal.app import ProgramCheck, make_app, open_portal
from swathe.portal.config import AlgorithmSettings
from swathe.portal.http.access_log import start_log
from swathe.portal.http.connections import with_limits
from swathe.portal.http.request_ids import ProxyIds, name_log_lines

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from types import FrameType

    from swathe.portal.config import Config

log = logging.getLogger(__name__)

IMPORTS = (
    "astropy.coordinates",
    "astropy.io.fits",
    "astropy.nddata",
    "astropy.table",
    "astropy.time",
    "astropy.units",
    "astropy.visualization",
    "astropy.wcs.utils",
    "scipy.optimize",
)
"""Modules that responses import on first use."""
BACKLOG = 2048
MOST_FILES = 65_536
"""Maximum number of open files, if the system allows it."""
SWITCH_S = 0.001
"""Time after which a computing thread lets others run. A response needs several turns, and waits
so long for each. What it costs jobs: `docs/benchmarks.md`."""
PATIENCE_S = 5
"""Time for running responses to finish after the portal was told to stop."""


class Server(uvicorn.Server):
    """A server that notes when it was told to stop."""

    def __init__(self, stopping: threading.Event, config: uvicorn.Config) -> None:
        """Take the event to set, and the settings of uvicorn."""
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle SIGTERM or SIGINT."""
        self._stopping.set()
        super().handle_exit(sig, frame)


def serve(config: Config, tell: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C. Call `tell` with the URL when the portal listens.

    Raises:
        SettingsError: If the portal cannot listen on its address.
        CatalogError: If the catalogue cannot be used.
    """
    # Their imports are circular: two threads that begin them at the same time would see modules
    # that are only half initialised.
    for name in IMPORTS:
        import_module(name)
    allow_files()
    if config.server.log_form is not None:
        start_log(config.server.log_form)
    name_log_lines()
    # The engine reads its stores from this catalogue.
    os.environ[VARIABLE] = config.catalog.database
    with listen(config) as listener, open_portal(config) as portal:
        if config.algorithms != AlgorithmSettings() and (fault := ProgramCheck(config).fault()):
            log.warning(fault)
        server = Server(
            portal.stopping,
            uvicorn.Config(
                _behind_proxies(make_app(portal), config.server.proxies),
                http=with_limits(AutoHTTPProtocol, config),
                ws="none",
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=PATIENCE_S,
            ),
        )
        # Garbage collection stops all requests: 0.1 s if it scans all modules. Exclude them.
        gc.freeze()
        sys.setswitchinterval(SWITCH_S)
        tell(url_of(config, listener))
        server.run(sockets=[listener])


def _behind_proxies(app: Any, proxies: Sequence[str]) -> Any:
    """Return the application with what trusted proxies say of the client and the request.

    Types are those of ASGI, which uvicorn and Starlette write differently.
    """
    if not proxies:
        return app
    with_addresses: Any = ProxyHeadersMiddleware(app, list(proxies))
    return ProxyIds(with_addresses, proxies)


def allow_files() -> None:
    """Raise the limit of open files of this process, as each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def listen(config: Config) -> socket.socket:
    """Return a socket that listens on the address of the settings; port 0 = any free port.

    Raises:
        SettingsError: If the address cannot be used.
    """
    host, port = config.server.host, config.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"server.host, server.port: cannot listen on {host}:{port}: {error.strerror}"
        ) from error
    return listener


def url_of(config: Config, listener: socket.socket) -> str:
    """Return the URL of the portal for a browser on this machine."""
    host = config.server.host
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{in_url(host)}:{listener.getsockname()[1]}/"
