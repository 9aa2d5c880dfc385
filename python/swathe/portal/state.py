"""What the handlers of a portal share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from swathe.catalog import Catalog
    from swathe.jobs import Jobs
    from swathe.portal.config import Config
    from swathe.portal.sources import Sources
    from swathe.portal.streams import Streams
    from swathe.portal.users import Access, User
    from swathe.workers import Pool, Runner
    from swathe.workers.pool import Held, Told


@dataclass(frozen=True)
class Portal:
    """One portal.

    Attributes:
        config: its settings.
        catalog: stores, datasets, measurements.
        jobs: jobs of all users.
        access: who may do what.
        sources: which files may be read.
        streams: places for answers that go on for long.
        pool: who does the work of jobs.
        runner: who gives it to them, as long as the application runs.
    """

    config: Config
    catalog: Catalog
    jobs: Jobs
    access: Access
    sources: Sources
    streams: Streams
    pool: Pool
    runner: Runner

    def trouble(self, told: Told) -> str:
        """Say why jobs are not worked on, where the pool tells this; empty where they are."""
        trouble = self.runner.trouble
        return f"jobs are not worked on: {trouble}" if trouble else told.trouble

    def url(self, request: HTTPConnection) -> str:
        """Give the URL of the portal as the client knows it, without a slash at the end."""
        if self.config.server.url:
            return self.config.server.url.rstrip("/")
        url = request.url
        return f"{url.scheme}://{url.netloc}"

    def held(self, user: User, told: Told) -> list[Held]:
        """Give what a user may know of what workers hold; URLs are of whoever named them."""
        sees_all = not self.access.required or user.may("admin")
        return [each for each in told.held if sees_all or "://" not in each.object]


def portal_of(request: HTTPConnection) -> Portal:
    """Give the portal that a request came to."""
    return cast("Portal", request.app.state.portal)
