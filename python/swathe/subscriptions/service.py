"""The subscriptions of a catalogue: what users ask of them, and the work on them.

The work has four steps: match changes of objects, submit jobs for groups that are due, record the
outcome of jobs, deliver events. A step that was interrupted is done again.
"""

from __future__ import annotations

import hashlib
import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from swathe.algorithms.algorithm_version import algorithm_version
from swathe.catalog.records.jobs import END_PHASES
from swathe.catalog.records.subscriptions import DueGroups, Firing, RunResult
from swathe.core.errors import (
    CatalogError,
    LimitError,
    NoSuchJobError,
    NoSuchSubscriptionError,
    SubscriptionError,
    SwatheError,
)
from swathe.datasets.earth_search import boxes_that_touch
from swathe.jobs.granules import VERSION
from swathe.jobs.orders import time_text
from swathe.jobs.types import Options
from swathe.operations.operation import ProgramOperation
from swathe.subscriptions.cursors import cursor_of, number_of
from swathe.subscriptions.webhook_address import check_host

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from swathe.catalog import Catalog
    from swathe.catalog.records.datasets import OutputDataset
    from swathe.catalog.records.subscriptions import Event, NewSubscription, Subscription
    from swathe.jobs import Jobs
    from swathe.subscriptions.request import SubscriptionRequest

log = logging.getLogger(__name__)

MOST_PAGE = 1000
"""Events of a page of a feed."""
RETRY_S = 60.0
"""Time after which groups are tried again whose job exceeds a limit for now."""


@dataclass(frozen=True)
class FeedPage:
    """Events of a feed.

    Attributes:
        events: events, in order.
        cursor: cursor after the last of them, for the next page.
        has_gap: whether events before the first were removed that the reader has not seen.
    """

    events: Sequence[Event]
    cursor: str
    has_gap: bool


class Subscriptions:
    """The subscriptions of a catalogue. Safe to share between threads."""

    def __init__(
        self,
        jobs: Jobs,
        most: int = 100,
        results: str | None = None,
        *,
        needs_token: bool = False,
        sends_mail: bool = False,
        webhook_hosts: Collection[str] = (),
    ) -> None:
        """Take the jobs, the most subscriptions of a user, and the place of results in a store.

        `results` is `STORE:prefix`; `None` if they are in no store. `needs_token` pauses the
        subscriptions of users without a valid token. `sends_mail` says whether the portal can.
        `webhook_hosts` are `host` or `host:port` of webhooks whose addresses need not be public.
        """
        self.sends_mail = sends_mail
        self._webhook_hosts = webhook_hosts
        self._needs_token = needs_token
        self._results = results
        self._jobs = jobs
        self._catalog: Catalog = jobs.catalog
        self._most = most
        self._last = 0

    def add(self, request: SubscriptionRequest, owner: str) -> Subscription:
        """Check a request and add it as a subscription of a user.

        Raises:
            SwatheError: As `check` and `Catalog.add_subscription`.
        """
        new, into = self.check(request, owner)
        return self._catalog.add_subscription(new, self._most, into)

    def check(
        self, request: SubscriptionRequest, owner: str
    ) -> tuple[NewSubscription, OutputDataset | None]:
        """Return the subscription that a request would add, and the dataset that its jobs fill.

        Raises:
            SubscriptionError: If results of its jobs would come to its dataset, directly or over
                other subscriptions, without end; or if it asks for mail, and the portal sends none.
            DatasetError: If the name of the dataset that its jobs fill is taken.
            WebhookError: If the webhook has an address that is not public.
            SwatheError: As `SubscriptionRequest.read`.
        """
        if request.mail is not None and not self.sends_mail:
            raise SubscriptionError(
                "mail: expected a portal that sends mail, found one whose operator has set no "
                "server (mail.server); read the feed, or use a webhook"
            )
        new = request.read(self._catalog, owner)
        if new.webhook is not None:
            check_host(new.webhook, self._webhook_hosts)
        self._check_loop(new.collection, self._results)
        into = self._dataset_of(new)
        if into is not None and self._catalog.dataset(new.collection).owner is None:
            self._check_loop(new.collection, f"{into.store}:{into.prefix}")
        return new, into

    def _dataset_of(self, new: NewSubscription) -> OutputDataset | None:
        """Return the dataset that the jobs of a subscription fill; `None` if there is none.

        Raises:
            JobError: If the portal has no store for it, or Swathe reads none of the outputs.
        """
        own = Options.from_catalog(new.job_options).own
        if not (name := own.get("register_as")):
            return None
        algorithm = algorithm_version(self._catalog, own["algorithm"]).definition
        return self._jobs.outputs.of(algorithm, name, new.owner, is_new=False)

    def _check_loop(self, name: str, place: str | None) -> None:
        """Check that results do not come to a dataset, as it has or is in their folder.

        Args:
            name: name of the dataset.
            place: folder of results, `STORE:prefix`; `None` if they are in no store.

        Raises:
            SubscriptionError: If they do.
        """
        if place is None:
            return
        dataset = self._catalog.dataset(name)
        store, _, prefix = place.partition(":")
        folders = [f"{each.strip('/')}/".lstrip("/") for each in (prefix, dataset.prefix)]
        is_inside = folders[0].startswith(folders[1]) or folders[1].startswith(folders[0])
        if store == dataset.store and is_inside:
            raise SubscriptionError(
                f"dataset: expected one that is not in the folder of results, found {name}: its "
                "subscription would run without end"
            )

    def feed(self, subscription_id: str, cursor: str | None, limit: int = 100) -> FeedPage:
        """Return the events after a cursor; without one, from the first.

        Raises:
            NoSuchSubscriptionError: If there is no such subscription.
            CursorError: If the cursor is not one of this feed.
        """
        secret = self._catalog.subscription_secret(subscription_id)
        after = 0 if cursor is None else number_of(secret, subscription_id, cursor)
        events = self._catalog.subscription_events(subscription_id, after, min(limit, MOST_PAGE))
        last = events[-1].number if events else after
        has_gap = bool(events) and events[0].number > after + 1
        return FeedPage(events, cursor_of(secret, subscription_id, last), has_gap)

    def turn(self) -> bool:
        """Do the next steps of the work; return whether there may be more at once."""
        if self._needs_token:
            self._catalog.pause_without_tokens()
        return any([self.match(), self.fire(), self.follow()])

    def match(self) -> bool:
        """Match changes of objects; return whether there were some."""
        if not self._catalog.has_changes():
            self._catalog.end_subscriptions()
            return False
        count = self._catalog.match_changes(boxes_that_touch)
        return count + self._catalog.catch_up(boxes_that_touch) > 0

    def fire(self) -> bool:
        """Submit a job for the groups of a subscription that are due; return whether some were."""
        due = self._catalog.due_groups(self._last)
        if due is None or not due.groups:
            return False
        self._last = due.number
        try:
            self._submit(due)
        except LimitError as error:
            self._catalog.postpone_groups(due, error.retry_after_s or RETRY_S)
            if error.retry_after_s is None:  # waiting does not help
                self._fail(due, error)
        except CatalogError:
            raise
        except SubscriptionError as error:
            log.info("%s", error)  # another process was first, or it was stopped
        except SwatheError as error:
            self._fail(due, error)
        return True

    def _submit(self, due: DueGroups) -> None:
        """Submit a job for groups, but for those that have a run with the same content."""
        options = Options.from_catalog(due.subscription.job_options)
        label = self._label(options)
        if isinstance(options.results.kind, ProgramOperation):
            options = replace(options, own={**options.own, "algorithm": label})
        signatures = {each.name: _signature(label, each.name, each.members) for each in due.groups}
        in_ledger = self._catalog.known_signatures(due.number, list(signatures.values()))
        old = [each for each in due.groups if signatures[each.name] in in_ledger]
        new = [each for each in due.groups if signatures[each.name] not in in_ledger]
        if old:
            self._catalog.settle_groups(_firing(due, old, signatures, label))
        if not new:
            return
        table = {
            "file": [f"{due.store}:{one.path}" for each in new for one in each.members],
            "group": [each.name for each in new for _ in each.members],
            # A granule that is replaced meanwhile is another run's.
            VERSION: [one.version for each in new for one in each.members],
        }
        if isinstance(options.results.kind, ProgramOperation):
            times = self._catalog.times_of(due)
            for column, end in (("start", 0), ("end", 1)):
                table[column] = [
                    time_text(times.get(one.path, (None, None))[end])
                    for each in new
                    for one in each.members
                ]
        self._jobs.submit(
            table,
            options,
            due.subscription.owner,
            name=f"{due.subscription.algorithm} of {due.subscription.collection}",
            firing=_firing(due, new, signatures, label),
        )

    def _label(self, options: Options) -> str:
        """Return the operation, or the version of the algorithm that runs now."""
        if not isinstance(options.results.kind, ProgramOperation):
            return options.operation
        return self._catalog.algorithm(options.own["algorithm"])[0].label

    def _fail(self, due: DueGroups, error: SwatheError) -> None:
        """Stop a subscription whose job is refused; its groups stay due until it is resumed."""
        with suppress(NoSuchSubscriptionError):  # removed by its user meanwhile
            self._catalog.fail_subscription(due.subscription.id, str(error))

    def follow(self) -> bool:
        """Record the outcome of jobs that have ended; return whether there were some."""
        jobs = [job for job in self._catalog.jobs_of_runs() if self._follow_job(job)]
        return bool(jobs)

    def _follow_job(self, job_id: str) -> bool:
        """Record the outcome of a job, if it has ended; start it if its submission was cut off."""
        try:
            job = self._catalog.job(job_id)
            if job.phase == "PENDING":
                with suppress(LimitError):  # tried again
                    self._jobs.start(job_id)
                return False
            if job.phase not in END_PHASES:
                return False
            options = Options.from_catalog(job.options)
            table = self._catalog.job_rows(job.number, start=job.inputs, limit=job.rows)
        except NoSuchJobError:
            self._catalog.finish_runs(job_id, {}, "its job was deleted")
            return True
        results = {
            row.id: RunResult(
                row.status, row.reason, f"{row.name}{options.results.suffix}" if row.name else ""
            )
            for row in table
        }
        reason = job.failure or f"its job is {job.phase}"
        self._catalog.finish_runs(job_id, results, reason)
        return True


def _firing(
    due: DueGroups, groups: Sequence[Any], signatures: dict[str, str], label: str
) -> Firing:
    some = {each.name: signatures[each.name] for each in groups}
    return Firing(replace(due, groups=groups), some, label)


def _signature(label: str, group: str, members: Sequence[tuple[str, str]]) -> str:
    """Return what tells one run of a group from all others, as hexadecimal digits."""
    digest = hashlib.sha256()
    for text in (label, group, *(part for each in sorted(members) for part in each)):
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()
