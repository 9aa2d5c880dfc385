"""The catalogue for users: one database, one mixin per subject."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from swathe.catalog.algorithms import AlgorithmRecords
from swathe.catalog.datasets.dataset_summaries import Summaries
from swathe.catalog.datasets.datasets import Datasets
from swathe.catalog.datasets.fields_of_view import FieldsOfView
from swathe.catalog.datasets.granule_table import GranuleCopies
from swathe.catalog.datasets.granules import Granules
from swathe.catalog.datasets.objects import Objects
from swathe.catalog.environments import EnvironmentRecords
from swathe.catalog.group_runs import GroupRunRecords
from swathe.catalog.jobs.callbacks import JobCallbacks
from swathe.catalog.jobs.jobs import JobQueue
from swathe.catalog.jobs.leases import Leases
from swathe.catalog.jobs.staged_rows import StagedRows
from swathe.catalog.libraries import LibraryRecords
from swathe.catalog.near_objects import NearObjectRecords
from swathe.catalog.outcomes import OutcomeRecords
from swathe.catalog.profiles import MeasurementRecords
from swathe.catalog.queries import QueryQueue
from swathe.catalog.read_only import ReadOnlyQueries
from swathe.catalog.reservations import ReservationRecords
from swathe.catalog.runs import RunRecords
from swathe.catalog.staging import StagingRecords
from swathe.catalog.stores import Stores
from swathe.catalog.stripe_work import StripeWorkRecords
from swathe.catalog.subscriptions.events import SubscriptionEvents
from swathe.catalog.subscriptions.firing import SubscriptionRuns
from swathe.catalog.subscriptions.mail import SubscriptionMail
from swathe.catalog.subscriptions.matching import Matching
from swathe.catalog.subscriptions.mqtt import SubscriptionMqtt
from swathe.catalog.subscriptions.subscriptions import SubscriptionRecords
from swathe.catalog.tokens import Tokens
from swathe.catalog.worker_replicas import WorkerReplicaRecords


class Catalog(
    Stores,
    StripeWorkRecords,
    MeasurementRecords,
    OutcomeRecords,
    Datasets,
    Granules,
    GranuleCopies,
    FieldsOfView,
    Objects,
    Summaries,
    Tokens,
    JobQueue,
    JobCallbacks,
    Leases,
    StagedRows,
    ReservationRecords,
    WorkerReplicaRecords,
    ReadOnlyQueries,
    QueryQueue,
    RunRecords,
    StagingRecords,
    NearObjectRecords,
    AlgorithmRecords,
    GroupRunRecords,
    LibraryRecords,
    EnvironmentRecords,
    SubscriptionRecords,
    SubscriptionEvents,
    SubscriptionMail,
    SubscriptionMqtt,
    SubscriptionRuns,
    Matching,
):
    """Stores, measurements, outcomes, datasets, tokens, jobs, workers, runs, algorithms, and more.

    Safe to share between threads, not between processes: each opens its own. Every method raises
    `CatalogError` if the database cannot be used: locked, read-only, full or unreachable.
    """


def use_catalog(catalog: Catalog | None) -> AbstractContextManager[Catalog]:
    """Return a catalogue for a `with`: the one that is given, which stays open, or the default."""
    return Catalog.open() if catalog is None else nullcontext(catalog)
