"""What the handlers of a portal share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from swathe.core.errors import AccessError
from swathe.core.host import is_loopback
from swathe.portal.http.shares import Answers

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from swathe.catalog import Catalog, Outcome, Store
    from swathe.jobs import Jobs
    from swathe.portal.config import Config
    from swathe.portal.http.long_responses import Streams
    from swathe.portal.sources import Sources
    from swathe.portal.uploads import Uploads
    from swathe.portal.users import Access, User
    from swathe.workers import Pool, Runner
    from swathe.workers.pool import PoolStatus


@dataclass(frozen=True)
class Portal:
    """One portal.

    Attributes:
        config: its settings.
        catalog: stores, datasets, measurements.
        jobs: jobs of all users.
        access: who may do what.
        sources: which files may be read.
        streams: places for answers that wait for what happens.
        uploads: reads the tables that users send.
        pool: who does the work of jobs.
        runner: who gives it to them, as long as the application runs.
        downloads: places for files and archives.
        answers: those given since it started.
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
    answers: Answers = field(default_factory=Answers)

    def sees_all(self, user: User | None) -> bool:
        """Tell whether a user may know what concerns all, and how the portal is run."""
        if user is None:
            return False
        return user.may("admin") or not (self.access.required or self.is_public)

    @property
    def is_public(self) -> bool:
        """Whether other machines can reach it, directly or by way of a proxy."""
        server = self.config.server
        outside = urlsplit(server.url).hostname or server.host
        return not (is_loopback(server.host) and is_loopback(outside))

    def place_of(self, store: Store, user: User | None) -> str:
        """Return the URL of a store; empty where only who sees all may know of the folder."""
        return store.url if self.sees_all(user) or not store.url.startswith("file:") else ""

    def told(self, user: User | None) -> PoolStatus:
        """Tell what a user may know of who does the work, and why it is not done."""
        told = self.pool.told()
        trouble = self.runner.trouble
        trouble = f"jobs are not worked on: {trouble}" if trouble else told.trouble
        if self.sees_all(user):
            return replace(told, trouble=trouble)
        if told.address:
            trouble = trouble.replace(told.address, "the scheduler")
            trouble = trouble.replace(told.address.partition("://")[2], "the scheduler")
        return replace(told, trouble=trouble, address="", held=[], hand_overs=())

    def outcomes(self, user: User | None, limit: int) -> list[Outcome]:
        """Return how predictions of all jobs came out, the latest first.

        Raises:
            AccessError: If the user may not know of the jobs of others.
        """
        if not self.sees_all(user):
            raise AccessError(
                "predictions tell of the jobs of all: a token with the scope 'admin' is needed; "
                "each job of yours tells what was predicted of it"
            )
        return self.catalog.outcomes(limit)

    def url(self, request: HTTPConnection) -> str:
        """Give the URL of the portal as the client knows it, without a slash at the end."""
        if self.config.server.url:
            return self.config.server.url.rstrip("/")
        url = request.url
        return f"{url.scheme}://{url.netloc}"


def portal_of(request: HTTPConnection) -> Portal:
    """Give the portal that a request came to."""
    return cast("Portal", request.app.state.portal)
