"""The datasets of a catalogue, and the copies of their objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.datasets.object_changes import log_changes, log_removal
from swathe.catalog.records.datasets import (
    CALIB_LEVELS,
    OUTPUT_CALIB_LEVEL,
    USUAL_CALIB_LEVEL,
    Dataset,
    OutputDataset,
    Replica,
    State,
)
from swathe.catalog.store_settings import LONGEST_NAME
from swathe.catalog.store_urls import NAME
from swathe.catalog.tables import DatasetRow, GranuleRow, ReplicaRow, StoreRow
from swathe.core.errors import DatasetError, NoSuchDatasetError, NoSuchStoreError
from swathe.core.value_errors import short_text


class Datasets(Database):
    """Named collections of objects, and their copies."""

    def check_output_dataset(self, new: OutputDataset) -> None:
        """Check that a dataset of a user can be added, or is that user's already.

        Raises:
            DatasetError: If the name is invalid or taken.
            NoSuchStoreError: If there is no such store.
        """
        with self._reading() as session:
            _is_claimed(session, new)

    def add_dataset(
        self,
        name: str,
        store: str,
        prefix: str,
        pattern: str | None,
        calib_level: int = USUAL_CALIB_LEVEL,
    ) -> Dataset:
        """Add a dataset, or return the same one if its first scan is unfinished.

        Raises:
            DatasetError: If the name is invalid or taken, or the calibration level is invalid.
            NoSuchStoreError: If there is no such store.
        """
        _check_name(name)
        _check_level(calib_level)
        with self._writing() as session:
            place = store_number(session, store)
            row = session.scalar(select(DatasetRow).where(DatasetRow.name == name))
            if row is None:
                row = DatasetRow(
                    name=name,
                    store_id=place,
                    prefix=prefix,
                    pattern=pattern,
                    calib_level=calib_level,
                    added_at=datetime.now(UTC),
                )
                session.add(row)
                try:
                    session.flush()
                except IntegrityError:
                    raise _name_taken_error(name) from None
            elif row.synced_at is not None:
                raise _name_taken_error(name)
            elif (row.store_id, row.prefix, row.pattern, row.calib_level) != (
                place,
                prefix,
                pattern,
                calib_level,
            ):
                raise DatasetError(
                    f"the first scan of the dataset {name!r} is unfinished, and it was of another "
                    "place, pattern or calibration level; continue it (swathe dataset sync "
                    f"{name}) or remove it"
                )
            return _dataset(row, store)

    def datasets(self) -> list[Dataset]:
        """Return all datasets with their counts, by name."""
        query = select(DatasetRow, StoreRow.name).join(StoreRow, StoreRow.id == DatasetRow.store_id)
        with self._reading() as session:
            summaries = [_dataset_of(session, row, store) for row, store in session.execute(query)]
        return sorted(summaries, key=lambda dataset: dataset.name)

    def dataset(self, name: str) -> Dataset:
        """Return a dataset with its counts.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        query = (
            select(DatasetRow, StoreRow.name)
            .join(StoreRow, StoreRow.id == DatasetRow.store_id)
            .where(DatasetRow.name == name)
        )
        with self._reading() as session:
            row = session.execute(query).first()
            if row is None:
                raise no_such(name)
            return _dataset_of(session, *row)

    def changes(self) -> list[tuple[str, datetime, int]]:
        """Return name, time of creation and number of changes of each dataset.

        Counts made from a dataset are valid while these are unchanged.
        """
        query = select(DatasetRow.name, DatasetRow.added_at, DatasetRow.changes)
        with self._reading() as session:
            return sorted((name, at, count) for name, at, count in session.execute(query))

    def remove_dataset(self, name: str) -> None:
        """Remove a dataset and its records; its files stay.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        with self._writing() as session:
            number = dataset_number(session, name)
            session.execute(delete(DatasetRow).where(DatasetRow.id == number))
            log_removal(session, name)

    def set_sync_time(self, name: str) -> None:
        """Note that a scan of the whole dataset has finished now."""
        with self._writing() as session:
            note_change(session, dataset_number(session, name), synced_at=datetime.now(UTC))

    def set_calib_level(self, name: str, calib_level: int) -> None:
        """Set the calibration level of a dataset.

        Raises:
            DatasetError: If there is no such level.
            NoSuchDatasetError: If there is no such dataset.
        """
        _check_level(calib_level)
        with self._writing() as session:
            note_change(session, dataset_number(session, name), calib_level=calib_level)

    def replicas(self, dataset: str, store: str, state: State | None = None) -> list[Replica]:
        """Return the copies in a store, by path.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        query = select(ReplicaRow).join(StoreRow, StoreRow.id == ReplicaRow.store_id)
        with self._reading() as session:
            number = dataset_number(session, dataset)
            query = query.where(ReplicaRow.dataset_id == number, StoreRow.name == store)
            if state is not None:
                query = query.where(ReplicaRow.state == state)
            rows = [_replica(row) for row in session.scalars(query)]
        return sorted(rows, key=lambda replica: replica.object_path)

    def copies(self, dataset: str, object_path: str) -> list[tuple[str, Replica]]:
        """Return the copies of an object with the names of their stores; that is its order.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        query = select(StoreRow.name, ReplicaRow).join(StoreRow, StoreRow.id == ReplicaRow.store_id)
        with self._reading() as session:
            number = dataset_number(session, dataset)
            query = query.where(
                ReplicaRow.dataset_id == number, ReplicaRow.object_path == object_path
            )
            rows = session.execute(query.order_by(StoreRow.name))
            return [(store, _replica(row)) for store, row in rows]

    def set_states(self, dataset: str, store: str, paths: Iterable[str], state: State) -> None:
        """Set the state of copies in a store; of those in the first store it is logged."""
        names = set(paths)
        if not names:
            return
        now = datetime.now(UTC)
        with self._writing() as session:
            number = dataset_number(session, dataset)
            place = store_number(session, store)
            rows_by_path = session.execute(
                select(ReplicaRow.id, ReplicaRow.object_path, ReplicaRow.version).where(
                    ReplicaRow.dataset_id == number, ReplicaRow.store_id == place
                )
            )
            changes = [each for each in rows_by_path if each.object_path in names]
            rows = [{"id": each.id, "state": state, "seen_at": now} for each in changes]
            if rows:  # an empty list would change all rows
                session.execute(update(ReplicaRow), rows)
                note_change(session, number)
            if place == session.scalar(select(DatasetRow.store_id).where(DatasetRow.id == number)):
                versions = {
                    each.object_path: each.version if state == "ok" else None for each in changes
                }
                log_changes(session, dataset, versions)


def claim_dataset(session: Session, new: OutputDataset) -> None:
    """Add a dataset of a user, unless it is that user's already and need not be new.

    Raises:
        DatasetError: If the name is invalid or taken.
        NoSuchStoreError: If there is no such store.
    """
    if _is_claimed(session, new):
        return
    place = store_number(session, new.store)
    now = datetime.now(UTC)
    session.add(
        DatasetRow(
            name=new.name,
            store_id=place,
            prefix=new.prefix,
            calib_level=OUTPUT_CALIB_LEVEL,
            added_at=now,
            synced_at=now,
            owner=new.owner,
        )
    )
    try:
        session.flush()
    except IntegrityError:
        raise _name_taken_error(new.name) from None


def _is_claimed(session: Session, new: OutputDataset) -> bool:
    """Return whether a dataset of a user is there; raises as `claim_dataset`."""
    _check_name(new.name)
    place = store_number(session, new.store)
    row = session.scalar(select(DatasetRow).where(DatasetRow.name == new.name))
    if row is None:
        return False
    is_own = (row.owner, row.store_id, row.prefix) == (new.owner, place, new.prefix)
    if new.is_new or not is_own:
        raise DatasetError(
            f"register_as: expected a name that is not taken, found {new.name!r}: there is a "
            "dataset of this name"
        )
    return True


def bytes_of_owner(session: Session, owner: str) -> int:
    """Return the size of the objects of the datasets that jobs of a user fill."""
    size = session.scalar(
        select(func.coalesce(func.sum(ReplicaRow.size), 0))
        .join(DatasetRow, DatasetRow.id == ReplicaRow.dataset_id)
        .where(
            DatasetRow.owner == owner,
            ReplicaRow.store_id == DatasetRow.store_id,
            ReplicaRow.state != "vanished",
        )
    )
    return int(size or 0)


def no_such(name: str) -> NoSuchDatasetError:
    """Return the error for an unknown dataset."""
    return NoSuchDatasetError(f"there is no dataset {name[:100]!r}; see: swathe dataset list")


def note_change(session: Session, number: int, **values: Any) -> None:
    """Note that a dataset has changed, and set its columns."""
    change = update(DatasetRow).where(DatasetRow.id == number)
    session.execute(change.values(changes=DatasetRow.changes + 1, **values))


def dataset_number(session: Session, name: str) -> int:
    """Return the number of a dataset."""
    number = session.scalar(select(DatasetRow.id).where(DatasetRow.name == name))
    if number is None:
        raise no_such(name)
    return number


def store_number(session: Session, name: str) -> int:
    """Return the number of a store."""
    number = session.scalar(select(StoreRow.id).where(StoreRow.name == name))
    if number is None:
        raise NoSuchStoreError(f"there is no store {name[:100]!r}; see: swathe store list")
    return number


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise DatasetError(
            f"a dataset's name is 2 to {LONGEST_NAME} letters, digits, '_', '.' and '-', the "
            f"first a letter (as a store's name: one letter would be a drive of Windows in "
            f"NAME:path); not {name[:LONGEST_NAME]!r}"
        )


def _check_level(calib_level: int) -> None:
    if not isinstance(calib_level, int) or calib_level not in CALIB_LEVELS:
        raise DatasetError(f"a calibration level is 0, 1, 2, 3 or 4, not {short_text(calib_level)}")


def _name_taken_error(name: str) -> DatasetError:
    return DatasetError(
        f"there is a dataset {name!r} already; to update it: swathe dataset sync {name}; "
        f"to choose other files: first swathe dataset remove {name}"
    )


def _dataset(row: DatasetRow, store: str) -> Dataset:
    return Dataset(
        row.name,
        store,
        row.prefix,
        row.pattern,
        row.calib_level,
        row.added_at,
        row.synced_at,
        owner=row.owner,
    )


def _dataset_of(session: Session, row: DatasetRow, store: str) -> Dataset:
    def count(query: object) -> int:
        return int(session.scalar(query) or 0)  # type: ignore[call-overload]

    is_present = (ReplicaRow.dataset_id == row.id) & (ReplicaRow.state == "ok")
    objects = select(func.count(func.distinct(ReplicaRow.object_path))).where(is_present)
    granules = select(func.count()).where(
        GranuleRow.dataset_id == row.id,
        GranuleRow.path.in_(select(ReplicaRow.object_path).where(is_present)),
    )
    states: dict[str, dict[str, int]] = {}
    of_stores = (
        select(StoreRow.name, ReplicaRow.state, func.count())
        .join(StoreRow, StoreRow.id == ReplicaRow.store_id)
        .where(ReplicaRow.dataset_id == row.id)
        .group_by(StoreRow.name, ReplicaRow.state)
    )
    for name, state, number in session.execute(of_stores):
        states.setdefault(name, {})[state] = number
    return replace(
        _dataset(row, store), objects=count(objects), granules=count(granules), states=states
    )


def _replica(row: ReplicaRow) -> Replica:
    return Replica(
        row.object_path, row.path, row.size, row.modified, row.version, row.state, row.reason
    )
