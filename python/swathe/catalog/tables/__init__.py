"""The tables, by subject. A change needs a migration, with a number in `revisions.REVISIONS`."""

from swathe.catalog.tables.algorithms import (
    AlgorithmRow,
    AlgorithmTimingRow,
    EnvironmentRow,
    GroupRunRow,
    LibraryRow,
)
from swathe.catalog.tables.base import Base
from swathe.catalog.tables.datasets import (
    ChangeCounterRow,
    DatasetRow,
    EarthFootprintRow,
    FootprintRow,
    GranuleRow,
    ObjectChangeRow,
    ReplicaRow,
)
from swathe.catalog.tables.jobs import (
    DeletedJobTable,
    JobBlockTable,
    JobCallbackRow,
    JobChunkTable,
    JobTable,
)
from swathe.catalog.tables.measurements import (
    HostRow,
    LinkRow,
    OutcomeRow,
    ProbeRow,
    ProfileRow,
    SampleRow,
)
from swathe.catalog.tables.queries import QueryTable
from swathe.catalog.tables.runs import RunArrayRow, RunDumpRow, RunFailoverRow, RunRow
from swathe.catalog.tables.staging import (
    StageFileRow,
    StageOutcomeRow,
    StagePinRow,
    StageRequestRow,
)
from swathe.catalog.tables.stores import (
    CacheCountRow,
    NearObjectRow,
    NearPinRow,
    StoreRow,
    StripeWorkTable,
)
from swathe.catalog.tables.subscriptions import (
    MailAddressRow,
    SubscriptionEventRow,
    SubscriptionGranuleRow,
    SubscriptionGroupRow,
    SubscriptionRunRow,
    SubscriptionTable,
)
from swathe.catalog.tables.tokens import TokenRow
from swathe.catalog.tables.workers import PoolTable, ReservationTable, WorkerReplicaTable

__all__ = [
    "AlgorithmRow",
    "AlgorithmTimingRow",
    "Base",
    "CacheCountRow",
    "ChangeCounterRow",
    "DatasetRow",
    "DeletedJobTable",
    "EarthFootprintRow",
    "EnvironmentRow",
    "FootprintRow",
    "GranuleRow",
    "GroupRunRow",
    "HostRow",
    "JobBlockTable",
    "JobCallbackRow",
    "JobChunkTable",
    "JobTable",
    "LibraryRow",
    "LinkRow",
    "MailAddressRow",
    "NearObjectRow",
    "NearPinRow",
    "ObjectChangeRow",
    "OutcomeRow",
    "PoolTable",
    "ProbeRow",
    "ProfileRow",
    "QueryTable",
    "ReplicaRow",
    "ReservationTable",
    "RunArrayRow",
    "RunDumpRow",
    "RunFailoverRow",
    "RunRow",
    "SampleRow",
    "StageFileRow",
    "StageOutcomeRow",
    "StagePinRow",
    "StageRequestRow",
    "StoreRow",
    "StripeWorkTable",
    "SubscriptionEventRow",
    "SubscriptionGranuleRow",
    "SubscriptionGroupRow",
    "SubscriptionRunRow",
    "SubscriptionTable",
    "TokenRow",
    "WorkerReplicaTable",
]
