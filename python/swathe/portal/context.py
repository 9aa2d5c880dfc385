"""The objects that the handlers of a portal share."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from swathe.core.errors import AccessError, CatalogError
from swathe.core.host import in_url, is_loopback
from swathe.portal.cache_sizes import CacheSizes
from swathe.portal.http.response_counts import ResponseCounts
from swathe.portal.mocs import Mocs
from swathe.portal.run_pictures import OpenSuperfiles
from swathe.portal.run_requests import Predictions

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from swathe.catalog import Catalog, Outcome, Store
    from swathe.jobs import Jobs
    from swathe.portal.config import Config
    from swathe.portal.http.long_responses import Streams
    from swathe.portal.sources import Sources
    from swathe.portal.uploads import Uploads
    from swathe.portal.users import Access, User
    from swathe.subscriptions.mail_server import MailServer
    from swathe.subscriptions.mqtt_broker import MqttBroker
    from swathe.subscriptions.service import Subscriptions
    from swathe.workers import Pool, Runner
    from swathe.workers.pool import PoolStatus


@dataclass(frozen=True)
class Portal:
    """One portal.

    Attributes:
        config: Settings of the portal.
        catalog: Stores, datasets and measurements.
        jobs: Jobs of all users.
        access: Users and their tokens.
        sources: Check of the files that may be read.
        streams: Slots for responses that wait for events.
        uploads: Reader of the tables that users send.
        pool: Workers that run the jobs.
        runner: Queue runner, which sends work to the pool.
        downloads: Slots for files and archives.
        subscriptions: Subscriptions of all users.
        mail_server: Server that mail goes to, if there is one.
        broker: Broker that events are published to, if there is one.
        responses: Counts of responses since the portal started.
        predictions: Predictions of runs, a few at the same time.
        superfiles: Superfiles of pictures that are open.
        cache_sizes: Sizes of the cache on disk, for metrics.
        stopping: Set when the portal was told to stop.
    """

    config: Config
    catalog: Catalog
    jobs: Jobs
    access: Access
    sources: Sources
    streams: Streams
    uploads: Uploads
    pool: Pool
    runner: Runner
    downloads: Streams
    subscriptions: Subscriptions
    mail_server: MailServer | None = None
    broker: MqttBroker | None = None
    responses: ResponseCounts = field(default_factory=ResponseCounts)
    predictions: Predictions = field(default_factory=Predictions)
    superfiles: OpenSuperfiles = field(default_factory=OpenSuperfiles)
    cache_sizes: CacheSizes = field(default_factory=CacheSizes)
    stopping: threading.Event = field(default_factory=threading.Event)

    @cached_property
    def mocs(self) -> Mocs:
        """MOCs of datasets."""
        return Mocs(self.catalog)

    def sees_all(self, user: User | None) -> bool:
        """Return whether a user may see the data of all users and the details of the machine."""
        if user is None:
            return False
        return user.may("admin") or not (self.access.needs_token or self.is_public)

    @property
    def is_public(self) -> bool:
        """Whether other machines can reach the portal, directly or through a proxy."""
        server = self.config.server
        outside = urlsplit(server.url).hostname or server.host
        return not (is_loopback(server.host) and is_loopback(outside))

    @property
    def has_runs(self) -> bool:
        """Whether pages link to runs: there are some, or the settings say so."""
        if self.config.runs.link or self.config.runs.submit:
            return True
        try:
            return bool(self.catalog.runs(most=1))
        except CatalogError:
            return False  # the page is about that error

    def place_of(self, store: Store, user: User | None) -> str:
        """Return the URL of a store; empty for a local folder if the user may not see paths."""
        return store.url if self.sees_all(user) or store.kind.local_path is None else ""

    def pool_status(self, user: User | None) -> PoolStatus:
        """Return the part of the pool's state that a user may see, with the last error."""
        status = self.pool.status()
        trouble = self.runner.trouble or self.runner.lag
        trouble = f"jobs are not running: {trouble}" if trouble else status.trouble
        if self.sees_all(user):
            return replace(status, trouble=trouble)
        if status.address:
            trouble = trouble.replace(status.address, "the scheduler")
            trouble = trouble.replace(status.address.partition("://")[2], "the scheduler")
        return replace(status, trouble=trouble, address="", held=[], hand_overs=())

    def outcomes(self, user: User | None, limit: int) -> list[Outcome]:
        """Return predicted and actual costs of all jobs, latest first.

        Raises:
            AccessError: If the user may not see the jobs of others.
        """
        if not self.sees_all(user):
            raise AccessError(
                "predictions of all users: expected a token with the scope 'admin', found one "
                "without it; each of your jobs has its own prediction"
            )
        return self.catalog.outcomes(limit)

    @property
    def own_url(self) -> str:
        """URL of the portal by its settings, without a slash at the end."""
        server = self.config.server
        return server.url.rstrip("/") or f"http://{in_url(server.host)}:{server.port}"

    def url(self, request: HTTPConnection) -> str:
        """Return the URL of the portal as the client uses it, without a slash at the end."""
        if self.config.server.url:
            return self.config.server.url.rstrip("/")
        url = request.url
        return f"{url.scheme}://{url.netloc}"


def portal_of(request: HTTPConnection) -> Portal:
    """Return the portal that a request came to."""
    return cast("Portal", request.app.state.portal)
