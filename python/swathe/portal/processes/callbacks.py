"""Callbacks of executions: what a client's server is sent when its job runs, and when it ends."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from swathe.catalog.records.jobs import ACTIVE
from swathe.core.errors import CatalogError, NoSuchJobError, SwatheError, WebhookError
from swathe.portal.processes.echo import end_after_pause
from swathe.portal.processes.job_documents import status_info
from swathe.portal.processes.results import results_document
from swathe.subscriptions.safe_post import post

if TYPE_CHECKING:
    from swathe.catalog.records.jobs import DueCallback
    from swathe.jobs import Job
    from swathe.portal.context import Portal

log = logging.getLogger(__name__)

PAUSES_S = (10.0, 60.0, 600.0)
"""Pauses between tries; after the last the job has a note."""
LOOK_S = 1.0
"""Pause until a job that has not started is looked at again."""
AT_ONCE = 8
OF_A_USER = 2
"""Callbacks of one user at the same time."""
HEADERS = {"content-type": "application/json"}


class Callbacks:
    """Callbacks that are sent while a portal runs, by the rules of webhooks."""

    def __init__(self, portal: Portal) -> None:
        """Take the portal."""
        self._portal = portal

    def deliver(self) -> bool:
        """Send what is due, in parallel; return whether there was some."""
        due = self._portal.catalog.due_callbacks(AT_ONCE, OF_A_USER)
        if not due:
            return False
        with ThreadPoolExecutor(len(due), "swathe-callbacks") as pool:
            return any(list(pool.map(self._deliver_one, due)))

    def _deliver_one(self, due: DueCallback) -> bool:
        """Send the next callback of a job; return whether something was sent."""
        catalog = self._portal.catalog
        try:
            job = end_after_pause(self._portal, self._portal.jobs.job(due.job))
        except NoSuchJobError:
            return False  # its callbacks were removed with it
        if job.phase not in ACTIVE:
            return self._tell_end(due, job)
        if job.phase != "EXECUTING" or due.urls.in_progress is None:
            catalog.postpone_callback(due, _after(LOOK_S), due.tries)
            return False
        try:
            self._send(due.urls.in_progress, status_info(job, self._portal.own_url))
        except WebhookError as error:  # once: its end is what counts
            log.info("job %s: callback: %s", due.job, error)
        catalog.end_progress_callback(due)
        return True

    def _tell_end(self, due: DueCallback, job: Job) -> bool:
        is_good = job.phase == "COMPLETED"
        url = due.urls.success if is_good else due.urls.failure
        try:
            if url is not None:
                url_of = self._portal.own_url
                make = results_document if is_good else _status
                self._send(url, make(self._portal, job, url_of))
        except CatalogError:
            raise  # tried again when the lease ends
        except SwatheError as error:
            log.info("job %s: callback: %s", due.job, error)
            is_final = not isinstance(error, WebhookError) or error.is_final
            if not is_final and due.tries < len(PAUSES_S):
                self._portal.catalog.postpone_callback(
                    due, _after(PAUSES_S[due.tries]), due.tries + 1
                )
                return True
            with suppress(NoSuchJobError):
                self._portal.catalog.note_job(due.job, f"the callback to {url} failed: {error}")
        self._portal.catalog.end_callbacks(due)
        return True

    def _send(self, url: str, content: dict[str, Any]) -> None:
        post(url, json.dumps(content).encode(), HEADERS, self._portal.config.access.webhooks)


def _status(_portal: Portal, job: Job, url: str) -> dict[str, Any]:
    return status_info(job, url)


def _after(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
