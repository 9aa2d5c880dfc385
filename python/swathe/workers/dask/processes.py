"""Processes of a pool: one scheduler, and workers."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask
from distributed import Scheduler, Worker
from distributed.comm.addressing import get_address_host, unparse_host_port
from distributed.comm.core import CommClosedError, connect

from swathe.core.errors import SettingsError, SwatheError
from swathe.workers.dask.tls import protocol
from swathe.workers.dask.worker import TOPIC, here
from swathe.workers.pool import FINISH_S, pauses

if TYPE_CHECKING:
    from distributed.security import Security

    from swathe.workers.dask.tls import Address

STDIN = 0
CONNECT_S = 5.0
LEAVE_S = 5.0
ANSWER_S = 3.0
"""Seconds that an ending worker waits for the portal to ask it to stay longer."""
LOOK_S = 0.05

ENDS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""A connection that ends in the middle of a message: the other side may be ending, and return."""

Tell = Callable[[str], None]

CONFIG: dict[str, Any] = {
    # We place batches: Dask must not spread, copy, steal or forget them.
    "distributed.scheduler.rootish-taskgroup": 0,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.work-stealing": False,
    # The pool's bytes are on disk and in the engine, where Dask cannot count them.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.comm.timeouts.connect": f"{CONNECT_S}s",
    "distributed.diagnostics.nvml": False,
    # By default each process ticks every 20 ms and samples its machine every 500 ms: wasted time
    # here.
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.event-loop": "asyncio",
}


class _NoHttp:
    """No web pages: everybody could see them."""

    def start_http_server(self, *_args: Any, **_settings: Any) -> None:
        """Do nothing."""


class PoolScheduler(_NoHttp, Scheduler):
    """A scheduler without web pages."""


class PoolWorker(_NoHttp, Worker):
    """A worker without web pages that stops its batches when it closes."""

    async def close(self, *args: Any, **settings: Any) -> Any:
        """Close: nobody will fetch the running batches."""
        here.halt()
        return await super().close(*args, **settings)


def configure() -> None:
    """Configure Dask for pools, in this process."""
    dask.config.set(CONFIG)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)


async def reach(url: str, security: Security | None, role: str) -> str:
    """Check that a scheduler accepts us; return our address as it sees us.

    Raises:
        OSError: If none answers now.
        SettingsError: If its certificates are of another authority, or missing.
    """
    settings = {} if security is None else security.get_connection_args(role)
    try:
        async with asyncio.timeout(2 * CONNECT_S):  # Dask waits for the first message without limit
            comm = await connect(url, timeout=CONNECT_S, **settings)
    except TimeoutError as error:
        raise OSError(f"the server there did not answer in {2 * CONNECT_S:g} s") from error
    except OSError as error:
        causes = _causes(error)
        for cause in causes:
            if isinstance(cause, ssl.SSLError) and not isinstance(cause, ENDS):
                raise SettingsError(
                    f"the certificates are of different authorities, or it has none: {cause}"
                ) from error
        if isinstance(error, CommClosedError) or any(isinstance(each, ENDS) for each in causes):
            why = "it may want certificates" if security is None else "it may have no certificates"
            raise OSError(f"the server there closes the connection; {why}") from error
        # Dask reports only how long it tried, and an address in memory.
        system = next(
            (each.strerror for each in causes if isinstance(each, OSError) and each.strerror), ""
        )
        raise OSError(f"cannot connect: {system}" if system else str(error)) from error
    except Exception as error:  # whatever Dask raises for a foreign message
        raise OSError("expected a scheduler of this version, found another server") from error
    await comm.close()
    return get_address_host(comm.local_address)


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and its causes."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    return causes


def serve_scheduler(address: Address, security: Security | None, tell: Tell) -> None:
    """Run a scheduler until the process is asked to end; call `tell` with its address.

    Raises:
        SettingsError: If it cannot listen at the address.
    """
    configure()
    asyncio.run(_scheduler(address, security, tell))


async def _scheduler(address: Address, security: Security | None, tell: Tell) -> None:
    ending = _told_to_end(is_attached=False).request
    try:
        scheduler = await PoolScheduler(
            host=unparse_host_port(address.host),  # brackets for IPv6
            port=address.port,
            protocol=f"{protocol(security)}://",
            security=security,
            dashboard=False,
        )
    except (OSError, RuntimeError) as error:
        fault = error.__cause__ or error
        raise SettingsError(f"{address}: cannot listen on this address: {fault}") from error
    try:
        tell(scheduler.address)
        await ending.wait()
    finally:
        await scheduler.close()


def serve_worker(
    address: Address,
    security: Security | None,
    *,
    threads: int,
    name: str | None,
    host: str | None,
    folder: str,
    lifetime_s: float | None,
    grace_s: float,
    is_attached: bool,
    tell: Tell,
    warn: Tell,
) -> None:
    """Run a worker until the process is asked to end.

    Args:
        address: address of the scheduler; retried without limit.
        security: certificates.
        threads: batches executed at the same time.
        name: name of the worker; by default its address.
        host: address to listen on; by default the one that reaches the scheduler.
        folder: folder for Dask's own files.
        lifetime_s: seconds after which it drains and ends.
        grace_s: seconds for draining: it finishes its batches and hands over its cache. A second
            signal ends it at once.
        is_attached: whether it ends at once when its standard input closes.
        tell: called with its address each time it joins a scheduler.
        warn: called with each problem.

    Raises:
        SettingsError: If the certificates do not fit.
    """
    configure()
    asyncio.run(
        _worker(
            address,
            security,
            tell,
            warn,
            lifetime_s,
            grace_s,
            is_attached,
            host,
            nthreads=threads,
            name=name,
            local_directory=folder,
        )
    )


async def _worker(
    address: Address,
    security: Security | None,
    tell: Tell,
    warn: Tell,
    lifetime_s: float | None,
    grace_s: float,
    is_attached: bool,
    host: str | None,
    **settings: Any,
) -> None:
    ending = _told_to_end(is_attached)
    if lifetime_s is not None:
        asyncio.get_running_loop().call_later(lifetime_s, ending.request.set)
    url = address.url(security)
    waits = pauses()
    while not ending.request.is_set():
        try:
            seen_at = await reach(url, security, "worker")
            # Dask would listen on all addresses, and report this one.
            at = {**settings, "host": unparse_host_port(host or seen_at)}
            await _work(url, security, ending, grace_s, tell, at)
            waits = pauses()
            fault = "the scheduler is gone"
        except SettingsError as error:
            raise SettingsError(f"{address}: {error}") from error
        except (OSError, TimeoutError, ValueError, RuntimeError, SwatheError) as error:
            fault = str(error) or type(error).__name__
        if not ending.request.is_set():
            pause_s = next(waits)
            warn(f"{address}: {fault}; next attempt in {pause_s:g} s")
            with suppress(TimeoutError):
                await asyncio.wait_for(ending.request.wait(), pause_s)


async def _work(
    url: str,
    security: Security | None,
    ending: ShutdownRequest,
    grace_s: float,
    tell: Tell,
    settings: dict[str, Any],
) -> None:
    """Run a worker as long as the scheduler exists."""
    try:
        worker = await PoolWorker(
            url, security=security, memory_limit=0, dashboard=False, death_timeout=30, **settings
        )
    except RuntimeError as error:
        # That Dask could not start a worker is not the reason.
        raise OSError(str(error.__cause__ or "") or str(error)) from error
    try:
        # Before the address is reported.
        here.share(get_address_host(worker.address), _certificates(security))
    except BaseException:
        await worker.close(timeout=LEAVE_S)
        raise
    tell(worker.address)
    signal, loss = (
        asyncio.create_task(ending.request.wait()),
        asyncio.create_task(worker.finished()),
    )
    await asyncio.wait((signal, loss), return_when=asyncio.FIRST_COMPLETED)
    if signal.done() and not loss.done():
        here.end()
        # So that its running batches are not blamed for the end.
        worker.log_event(TOPIC, {"leaving": worker.address, "grace_s": grace_s})
        await _part(worker, ending, loss, grace_s)
    for task in (signal, loss):
        task.cancel()
    await worker.close(timeout=LEAVE_S)


async def _part(
    worker: PoolWorker, ending: ShutdownRequest, disconnect: asyncio.Task[None], grace_s: float
) -> None:
    """Stay as long as the portal asks, for running batches and the hand-over."""
    began = time.monotonic()
    while here.has_portal and not (ending.hurry.is_set() or disconnect.done()):
        now, granted_until = time.monotonic(), here.granted_until
        # A portal that does not answer may have nothing to hand over, or be an older version.
        until = began + ANSWER_S if granted_until is None else granted_until
        if granted_until is None and worker.state.tasks:
            # Results are dropped once the portal has them.
            until = began + FINISH_S
        if now >= min(until, began + grace_s):
            return
        await asyncio.sleep(LOOK_S)


def _certificates(security: Security | None) -> tuple[str, str, str] | None:
    """Return the files of the authority, a worker's certificate, and its key."""
    if security is None:
        return None
    files: Any = security
    return files.tls_ca_file, files.tls_worker_cert, files.tls_worker_key


@dataclass(frozen=True)
class ShutdownRequest:
    """Whether the process is asked to end, and whether at once."""

    request: asyncio.Event
    hurry: asyncio.Event

    def tell(self) -> None:
        """Ask it to end; the second time at once."""
        if self.request.is_set():
            self.hurry.set()
        self.request.set()


def _told_to_end(is_attached: bool) -> ShutdownRequest:
    """Return the events set by signals to end; if attached, also by the end of standard input."""
    ending = ShutdownRequest(asyncio.Event(), asyncio.Event())
    loop = asyncio.get_running_loop()

    def read() -> None:
        if not os.read(STDIN, 1024):
            loop.remove_reader(STDIN)
            ending.hurry.set()
            ending.request.set()

    if is_attached:
        loop.add_reader(STDIN, read)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.tell)
    return ending
