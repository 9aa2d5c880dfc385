"""The portal as an ASGI application: `/api` (REST), `/vo`, `/stac`, `/ogc`, and web pages."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exception_handlers import http_exception_handler
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from swathe import _swathe
from swathe.algorithms.group_run import program_lanes
from swathe.algorithms.static_check import SIGNATURE
from swathe.catalog import Catalog
from swathe.catalog.records.jobs import Share
from swathe.core.confined import ConfinedProcess
from swathe.core.errors import (
    NoSuchStoreError,
    OptionError,
    OutputError,
    SandboxUnavailableError,
    SettingsError,
    SwatheError,
)
from swathe.core.host import cores
from swathe.core.outputs import refuse_inside
from swathe.jobs import Folder, Jobs, Limits, ResultStore, result_store_by_name
from swathe.portal import health, pages, vo
from swathe.portal.access import token_of
from swathe.portal.api import answer_unknown, make_api
from swathe.portal.config import growth_of
from swathe.portal.context import Portal
from swathe.portal.dataset_watch import DatasetWatch
from swathe.portal.guard import EXPOSED_HEADERS, Guard
from swathe.portal.http.access_log import AccessLine
from swathe.portal.http.headers import add_security_headers
from swathe.portal.http.long_responses import Streams
from swathe.portal.http.request_ids import name_request
from swathe.portal.http.response_counts import count_responses
from swathe.portal.http_errors import headers_of, status_of, text_of
from swathe.portal.pages.archive_counts import ArchiveCounts
from swathe.portal.pages.stripe_servers import StripeServers
from swathe.portal.processes import make_processes
from swathe.portal.processes import to_landing_page as to_processes
from swathe.portal.save_worker_replicas import Replicas
from swathe.portal.sources import Sources
from swathe.portal.stac import make_stac, to_landing_page
from swathe.portal.subscription_work import SubscriptionWork
from swathe.portal.uploads import IMPORTS, Uploads
from swathe.portal.users import Access
from swathe.portal.vo.tap.query_work import QueryWork
from swathe.stores.folders import store_folders
from swathe.subscriptions.service import Subscriptions
from swathe.workers import LocalPool, Pool, Runner
from swathe.workers.autoscale.pool import GrowingPool
from swathe.workers.autoscale.providers.htcondor import HTCondor
from swathe.workers.autoscale.providers.pbs import PBS
from swathe.workers.autoscale.providers.provider import Processes, Provider, worker_command
from swathe.workers.autoscale.providers.slurm import Slurm
from swathe.workers.dask.tls import certificate_folder, read_address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from starlette.types import Receive, Scope, Send

    from swathe.portal.config import Config, WorkersSettings
    from swathe.workers.autoscale.providers.batch_systems import BatchSystem
    from swathe.workers.dask.pool import DaskPool

DAY_S = 86_400
BATCH_SYSTEMS: Mapping[str, type[BatchSystem]] = {"slurm": Slurm, "pbs": PBS, "htcondor": HTCondor}


@contextmanager
def open_portal(config: Config) -> Iterator[Portal]:
    """Open the catalogue, jobs and worker pool of a portal.

    Raises:
        CatalogError: If the catalogue cannot be used.
        SettingsError: If results cannot be stored as the settings require.
    """
    with Catalog.open(config.catalog.database) as catalog:
        catalog.check_writable()  # else jobs would wait without end
        sources = Sources(catalog, config.access.hosts)
        access = Access(config.access.tokens == "required", catalog.token)
        limits = limits_of(config)
        place = place_of(config, catalog)
        mail_server, broker = config.mail.mail_server, config.mqtt.broker
        _swathe.confine(list(config.access.hosts))
        try:
            with (
                Jobs(
                    catalog,
                    place,
                    limits=limits,
                    check_source=sources.check,
                    check_programs=ProgramCheck(config),
                    datasets=datasets_of(config, catalog),
                    program_lanes=program_lanes(config.algorithms.box),
                ) as jobs,
                closing(ConfinedProcess(imports=(*IMPORTS, SIGNATURE))) as launcher,
            ):
                bounds = config.limits
                uploads = Uploads(launcher, limits.rows_per_job, bounds.upload_mb)
                streams = Streams(bounds.streams, bounds.share)
                downloads = Streams(bounds.downloads, bounds.share)
                pool = pool_of(config, place, catalog)
                runner = Runner(jobs, pool)
                yield Portal(
                    config,
                    catalog,
                    jobs,
                    access,
                    sources,
                    streams,
                    uploads,
                    pool,
                    runner,
                    downloads,
                    Subscriptions(
                        jobs,
                        bounds.subscriptions,
                        config.results.store,
                        needs_token=access.needs_token,
                        sends_mail=mail_server is not None,
                        webhook_hosts=config.access.webhooks,
                    ),
                    mail_server,
                    broker,
                )
        finally:
            _swathe.confine([])


class ProgramCheck:
    """Check that programs of users may run; what holds is not checked again.

    Workers on other machines check theirs.
    """

    def __init__(self, config: Config) -> None:
        self._box, self._are_elsewhere = config.algorithms.box, bool(config.workers.url)
        self._holds = False

    def __call__(self) -> None:
        """Check it.

        Raises:
            SandboxUnavailableError: If they may not.
        """
        if self._box is None:
            raise SandboxUnavailableError("this portal runs no programs of users (algorithms.run)")
        if not (self._holds or self._are_elsewhere):
            self._box.check()
            self._holds = True

    def fault(self) -> str:
        """Return why programs fail here, by a trial of the sandbox and of Python in it; else ""."""
        if self._box is None or self._are_elsewhere:
            return ""
        try:
            self._box.check()
            self._box.check_python()
        except (OptionError, SandboxUnavailableError) as error:
            return f"[algorithms]: {error}"
        return ""


def place_of(config: Config, catalog: Catalog) -> ResultStore:
    """Return the store of results, after a trial write.

    Raises:
        SettingsError: If results cannot be stored there.
    """
    results = config.results
    name = "folder" if results.store is None else "store"
    try:
        if results.store is None:
            refuse_inside(results.folder, store_folders(catalog.stores()))
            return Folder(results.folder)
        return result_store_by_name(catalog, results.store, results.scratch)
    except (NoSuchStoreError, OutputError) as error:
        raise SettingsError(f"results.{name}: {error}") from error


def datasets_of(config: Config, catalog: Catalog) -> str | None:
    """Return the folder for datasets of outputs, after a trial write; `None` if there is none.

    Raises:
        SettingsError: If objects cannot be stored there.
    """
    results = config.results
    if results.datasets is not None:
        try:
            result_store_by_name(catalog, results.datasets, results.scratch)
        except (NoSuchStoreError, OutputError) as error:
            raise SettingsError(f"results.datasets: {error}") from error
    return results.datasets


def pool_of(config: Config, place: ResultStore, catalog: Catalog) -> Pool:
    """Return the worker pool, which is not started yet.

    Raises:
        SettingsError: If the pool cannot be made as the settings require.
    """
    workers = config.workers
    if not workers.url:
        threads = config.limits.threads or cores()
        box = config.algorithms.box
        return LocalPool(place, threads, batch_s=workers.batch_s, box=box)
    try:
        from swathe.workers.dask.pool import DaskPool
    except ImportError as error:
        raise SettingsError(f"workers.url: {error}; try: pip install 'swathe[cluster]'") from error
    try:
        pool = DaskPool(
            read_address(workers.url),
            place,
            certificates=workers.certificates,
            insecure=workers.insecure,
            hosts=config.access.hosts,
            batch_s=workers.batch_s,
            hand_over_s=workers.hand_over_s,
        )
    except OutputError as error:
        raise SettingsError(f"results: {error}") from error
    return growing(workers, pool, catalog) if workers.grow else pool


def growing(workers: WorkersSettings, pool: DaskPool, catalog: Catalog) -> GrowingPool:
    """Return an autoscaling pool, which starts and ends workers as needed."""
    walltime_s, threads = workers.walltime_s, workers.cores
    address = read_address(workers.url)
    command = worker_command(
        workers.url,
        certificate_folder(address, workers.certificates, insecure=workers.insecure),
        threads,
        walltime_s,
        workers.cache,
        hand_over_s=workers.hand_over_s,
        insecure=workers.insecure,
    )
    prefix = f"swathe-{pool.digest}-"
    provider: Provider
    if workers.grow == "processes":
        provider = Processes(command)
    else:
        provider = BATCH_SYSTEMS[workers.grow](
            command,
            prefix,
            threads=threads,
            walltime_s=walltime_s,
            memory_gb=workers.memory_gb,
            partition=workers.partition,
            options=workers.options,
        )
    return GrowingPool(
        pool,
        provider,
        growth_of(workers),
        kind=workers.grow,
        prefix=prefix,
        threads=threads,
        waiting=catalog.waiting,
        reservations=catalog.reservations,
    )


def limits_of(config: Config) -> Limits:
    """Return the limits of jobs from the settings."""
    limits = config.limits
    usual = Share(limits.slots, round(limits.result_gb * 1e9), limits.priority)
    shares = {
        user: Share(
            usual.slots if share.slots is None else share.slots,
            usual.result_bytes if share.result_gb is None else round(share.result_gb * 1e9),
            usual.priority if share.priority is None else share.priority,
        )
        for user, share in config.shares.items()
    }
    return Limits(
        rows_per_job=limits.rows_per_job,
        rows_waiting=limits.rows_waiting,
        jobs=limits.jobs,
        result_bytes=usual.result_bytes,
        slots=usual.slots,
        priority=usual.priority,
        shares=shares,
        removal_bytes=round(limits.removal_gb * 1e9),
        cutout_bytes=limits.cutout_mb << 20,
        default_s=config.results.keep_days * DAY_S,
        longest_s=limits.longest_days * DAY_S,
    )


@asynccontextmanager
async def _working(portal: Portal, app: FastAPI) -> AsyncIterator[None]:
    """Run jobs while the application runs."""
    portal.runner.start()
    counting = threading.Thread(target=app.state.holdings.begin, name="counting")
    counting.start()
    try:
        with (
            Replicas(portal.catalog, portal.pool),
            SubscriptionWork(portal),
            QueryWork(portal),
            DatasetWatch(portal.catalog, portal.config.datasets),
        ):
            yield
    finally:
        await run_in_threadpool(portal.runner.stop)
        await run_in_threadpool(counting.join)  # the catalogue is closed next


class SecureApp(FastAPI):
    """An application that adds security headers to every response, errors included."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        portal: Portal = self.state.portal
        form = portal.config.server.log_form
        line = AccessLine(scope)
        send = name_request(scope, line.watch(send))
        send = add_security_headers(send, is_shared=bool(portal.config.access.origins))
        send = count_responses(send, scope, portal.responses)
        try:
            await super().__call__(scope, receive, send)
        finally:
            if form is not None:
                line.write(form, partial(user_name, portal, scope))


def user_name(portal: Portal, scope: Scope) -> str:
    """Return the user of a request by its token; empty if there is none, or none is known."""
    if not portal.access.needs_token:
        return ""
    user = portal.access.cached_user(token_of(HTTPConnection(scope)))
    return "" if user is None else user.name


def make_app(portal: Portal) -> FastAPI:
    """Make the application that serves a portal."""
    app = SecureApp(
        openapi_url=None, docs_url=None, redoc_url=None, lifespan=partial(_working, portal)
    )
    app.state.portal = portal
    app.state.holdings = ArchiveCounts(portal.catalog)
    app.state.stripe_servers = StripeServers()
    app.state.api = make_api(portal)
    app.mount("/api", app.state.api)
    app.mount("/stac", make_stac(portal, app.state.holdings))
    app.add_route("/stac", to_landing_page)
    app.mount("/ogc", make_processes(portal))
    app.add_route("/ogc", to_processes)
    app.include_router(vo.build_router())
    app.include_router(health.router)
    app.include_router(pages.build_router())

    @app.exception_handler(SwatheError)
    async def tell(_request: Request, error: SwatheError) -> PlainTextResponse:
        return PlainTextResponse(f"Error: {text_of(error)}\n", status_of(error), headers_of(error))

    @app.exception_handler(HTTPException)
    async def tell_of_none(request: Request, error: HTTPException) -> Response:
        # Paths with line feeds do not reach the mounted interface.
        to_api = request.url.path.startswith("/api/")
        return await (answer_unknown if to_api else http_exception_handler)(request, error)

    # The middleware added last handles a request first.
    app.add_middleware(Guard, config=portal.config)
    if origins := portal.config.access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=(
                "Authorization",
                "Content-Type",
                "If-None-Match",
                "If-Range",
                "Prefer",
                "Range",
            ),
            expose_headers=EXPOSED_HEADERS,
        )
    return app
