"""A remote portal: `swathe.connect`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from swathe.client.connection import PortalConnection
from swathe.client.job import RemoteJob
from swathe.client.subscriptions import RemoteSubscriptions
from swathe.core.argument_checks import check_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from swathe.catalog.records.algorithms import AlgorithmRecord, LibraryRecord
    from swathe.core.box import Mode
    from swathe.files.planes import Planes
    from swathe.jobs.types import Estimate, Job

TOKEN_VARIABLE = "SWATHE_TOKEN"


def connect(url: str, token: str | None = None) -> RemotePortal:
    """Connect to a portal.

    Args:
        url: URL of the portal, as `https://archive.example`.
        token: Token of the user; else `$SWATHE_TOKEN`, if that is set.

    Raises:
        SettingsError: If the URL is invalid.
        TokenError: If the portal does not accept the token.
        SourceError: If the portal does not answer.
    """
    if token is not None:
        check_text("token", token)
    portal = RemotePortal(url, token or os.environ.get(TOKEN_VARIABLE) or None)
    portal.about()
    return portal


class RemotePortal(RemoteSubscriptions):
    """A remote portal, as `connect` returns it. May be shared by threads."""

    def __init__(self, url: str, token: str | None = None) -> None:
        """Take the URL and the token. Users call `swathe.connect`."""
        self._connection = PortalConnection(url, token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemotePortal {self.url}>"

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def about(self) -> dict[str, Any]:
        """Return the version and limits of the portal, and the user that the token names."""
        return self._connection.get_json("about")

    def estimate(
        self,
        targets: Any,
        *,
        operation: str | None = None,
        format: str | None = None,  # noqa: A002 - as in cut_many
        mode: Mode = "trim",
        fill: float | None = None,
        planes: Planes | None = None,
        bands: Sequence[str] | str = (),
        dataset: str | None = None,
        time: tuple[Any, Any] | None = None,
        file: str | None = None,
        size: Any = None,
        frame: str | None = None,
        ra: str | None = None,
        dec: str | None = None,
        **own_options: Any,
    ) -> Estimate:
        """Return the size and predicted cost of a job. The arguments are those of `submit`.

        Raises:
            TargetsError, JobError, RegionError: As `submit`.
        """
        from swathe.client.answers import estimate_of
        from swathe.files.targets.target_list import choices_of

        options = _options(operation, format, mode, fill, planes, bands, dataset, time, own_options)
        choices = choices_of(file=file, size=size, frame=frame, ra=ra, dec=dec)
        answer = self._connection.send_targets("estimate", targets, choices, options, {})
        return estimate_of(answer, self.url)

    def submit(
        self,
        targets: Any,
        *,
        name: str = "",
        start: bool = True,
        operation: str | None = None,
        format: str | None = None,  # noqa: A002 - as in cut_many
        mode: Mode = "trim",
        fill: float | None = None,
        planes: Planes | None = None,
        bands: Sequence[str] | str = (),
        dataset: str | None = None,
        time: tuple[Any, Any] | None = None,
        file: str | None = None,
        size: Any = None,
        frame: str | None = None,
        ra: str | None = None,
        dec: str | None = None,
        **own_options: Any,
    ) -> RemoteJob:
        """Submit a job.

        Example:
            >>> portal = swathe.connect("https://archive.example")
            >>> job = portal.submit("targets.csv", format="png")
            >>> job.wait().counts["ok"]
            2000
            >>> job.fetch("cutouts/")

        Args:
            targets: A table, a mapping of columns, or the path of a table, as for `cut_many`. Its
                files are `STORE:path` of the portal's stores. Without a column `file`, each sky
                position is cut from every image that shows it.
            name: Name of the job.
            start: Whether to start the job at once.
            operation: As in `cut_many`.
            format: As in `cut_many`.
            mode: As in `cut_many`.
            fill: As in `cut_many`.
            planes: As in `cut_many`.
            bands: Bands of the images of sky positions without a file; with `rgb` exactly three,
                red first. For `rgb` of listed files as in `cut_many`.
            dataset: Dataset searched for sky positions without a file; by default all.
            time: Time range of their images, from and to: MJD (UTC), ISO text or astropy times.
            file: File of targets that name none, as `STORE:path`.
            size: Size of sky targets without one, as in `cut_many`.
            frame: Frame of positions, as in `cut_many`.
            ra: Name of the column of right ascension or longitude, if that is ambiguous.
            dec: Name of the column of declination or latitude.
            **own_options: Options of the operation, as in `cut_many`: `stack` of a stack.

        Raises:
            TargetsError, JobError: If the targets or the options are invalid.
            RegionError: If the planes are invalid.
            LimitError: If the job exceeds a limit of the portal.
        """
        from swathe.client.answers import entry
        from swathe.files.targets.target_list import choices_of

        fields = {"name": name, "start": start}
        options = _options(operation, format, mode, fill, planes, bands, dataset, time, own_options)
        choices = choices_of(file=file, size=size, frame=frame, ra=ra, dec=dec)
        answer = self._connection.send_targets("jobs", targets, choices, options, fields)
        return RemoteJob(self._connection, entry(answer, "id", str, self.url))

    def job(self, job_id: str) -> RemoteJob:
        """Return a job by its id.

        Raises:
            NoSuchJobError: If there is no such job of this user.
        """
        job = RemoteJob(self._connection, job_id)
        job.status()
        return job

    def jobs(self, last: int = 100) -> list[Job]:
        """Return the user's last jobs, newest first."""
        from swathe.client.answers import entry, job_of

        contents = entry(self._connection.get_json("jobs", last=last), "jobs", list, self.url)
        return [job_of(content, self.url) for content in contents]

    def add_algorithm(self, source: str | os.PathLike[str]) -> AlgorithmRecord:
        """Add an algorithm. The same source again is the same version.

        Args:
            source: file of its source, a package, or a folder to pack.

        Raises:
            NotFoundError: If there is no such file.
            AlgorithmError: If its definition is invalid, or the version has another source.
            AccessError: If another user owns the name.
        """
        from swathe.algorithms.header import read_source
        from swathe.client.answers import algorithm_of

        return algorithm_of(self._add("algorithms", read_source(Path(source)).content), self.url)

    def algorithms(self) -> list[AlgorithmRecord]:
        """Return all versions of algorithms, by name, the newest of each first."""
        from swathe.client.answers import algorithm_of

        return [algorithm_of(content, self.url) for content in self._versions("algorithms")]

    def algorithm(self, name: str) -> dict[str, Any]:
        """Return a version of an algorithm, `NAME@VERSION`, or the newest, with its definition.

        Raises:
            NoSuchAlgorithmError: If there is none.
        """
        path, version = _path_of("algorithms", name)
        return self._connection.get_json(path, **version)

    def remove_algorithm(self, name: str) -> None:
        """Remove a version of an algorithm of one's own, `NAME@VERSION`, or by `NAME` all.

        Raises:
            NoSuchAlgorithmError: If there is none.
            AccessError: If another user owns it.
        """
        self._remove("algorithms", name)

    def add_library(self, source: str | os.PathLike[str]) -> LibraryRecord:
        """Add a library of one's own. The same package again is the same version.

        Args:
            source: folder or tar with `library.toml`.

        Raises:
            NotFoundError: If there is no such file.
            AlgorithmError: If it is invalid, or the version has another package.
        """
        from swathe.algorithms.header import read_content
        from swathe.client.answers import library_of

        return library_of(self._add("libraries", read_content(Path(source))), self.url)

    def libraries(self) -> list[LibraryRecord]:
        """Return all versions of one's own libraries, by name, the newest of each first."""
        from swathe.client.answers import library_of

        return [library_of(content, self.url) for content in self._versions("libraries")]

    def library(self, name: str) -> dict[str, Any]:
        """Return a version of a library, `NAME@VERSION`, or the newest, with its files.

        Raises:
            NoSuchAlgorithmError: If there is none.
        """
        path, version = _path_of("libraries", name)
        return self._connection.get_json(path, **version)

    def remove_library(self, name: str) -> None:
        """Remove a version of a library, `NAME@VERSION`, or by `NAME` all.

        Raises:
            NoSuchAlgorithmError: If there is none.
        """
        self._remove("libraries", name)

    def _add(self, kind: str, content: bytes) -> dict[str, Any]:
        """Send a version of an algorithm or a library; return the answer."""
        headers = {"Content-Type": "application/octet-stream"}
        return self._connection.post_json(kind, content=content, headers=headers)

    def _versions(self, kind: str) -> list[dict[str, Any]]:
        """Return all versions of algorithms or libraries."""
        from swathe.client.answers import entry

        return entry(self._connection.get_json(kind), kind, list, self.url)

    def _remove(self, kind: str, name: str) -> None:
        """Remove a version of an algorithm or a library, or all."""
        path, version = _path_of(kind, name)
        self._connection.request_once("DELETE", path, params=version)

    def order(
        self,
        algorithm: str,
        *,
        collection: str = "",
        time: tuple[Any, Any] | None = None,
        bbox: tuple[float, float, float, float] | None = None,
        parameters: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        name: str = "",
        start: bool = True,
        preview: bool = False,
        register_as: str = "",
    ) -> RemoteJob:
        """Order an algorithm for the granules that a search finds.

        Example:
            >>> portal = swathe.connect("https://archive.example")
            >>> job = portal.order("lst-quarter-degree", collection="MOD11_L2",
            ...                    time=("2005-05-01", "2005-05-07"), bbox=(-10, 35, 30, 60))
            >>> job.wait().counts["ok"]
            294

        Args:
            algorithm: `NAME@VERSION`, or `NAME` for the newest version.
            collection: Dataset that is searched; by default that of the algorithm.
            time: First and last time: MJD (UTC), ISO text or astropy times; either may be `None`.
            bbox: West, south, east and north in degrees.
            parameters: Values of parameters; others have their defaults.
            files: `STORE:path` of each other input, by its name.
            name: Name of the job.
            start: Whether to start the job at once.
            preview: Whether to run the first group only; its outputs are added to no dataset.
            register_as: Name of a new dataset of the portal, which gets the outputs that
                Swathe reads.

        Raises:
            NoSuchAlgorithmError, NoSuchDatasetError: If there is none.
            AlgorithmError: If parameters, files or granules do not fit the algorithm.
            DatasetError: If time or place are invalid, no granule matches, or the name of the new
                dataset is invalid or taken.
            JobError: If the portal has no store for datasets, or Swathe reads none of the outputs.
            LimitError: If the job exceeds a limit of the portal.
        """
        from swathe.client.answers import entry

        content = _order(algorithm, collection, time, bbox, parameters, files)
        content |= {"name": name, "start": start, "preview": preview, "register_as": register_as}
        answer = self._connection.post_json("orders", json=content)
        return RemoteJob(self._connection, entry(answer, "id", str, self.url))

    def estimate_order(
        self,
        algorithm: str,
        *,
        collection: str = "",
        time: tuple[Any, Any] | None = None,
        bbox: tuple[float, float, float, float] | None = None,
        parameters: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        register_as: str = "",
    ) -> Estimate:
        """Return the groups and the predicted cost of an order. The arguments are those of `order`.

        The prediction is `None` if the version has not run on the portal yet.

        Raises:
            AlgorithmError, DatasetError, JobError: As `order`.
        """
        from swathe.client.answers import estimate_of

        content = _order(algorithm, collection, time, bbox, parameters, files)
        content["register_as"] = register_as
        return estimate_of(self._connection.post_json("orders/estimate", json=content), self.url)

    def remove_dataset(self, name: str) -> None:
        """Remove a dataset that your orders or subscriptions filled, with its objects.

        Raises:
            NoSuchDatasetError: If there is none.
            AccessError: If it is not yours.
            JobError: If a job that has not ended fills it.
        """
        path = f"datasets/{quote(check_text('name', name), safe='')}"
        self._connection.request_once("DELETE", path)

    def pool(self) -> dict[str, Any]:
        """Return the state of the worker pool, with the cached objects of its workers."""
        return self._connection.get_json("pool")


def _order(
    algorithm: str,
    collection: str,
    time: tuple[Any, Any] | None,
    bbox: tuple[float, float, float, float] | None,
    parameters: Mapping[str, Any] | None,
    files: Mapping[str, str] | None,
) -> dict[str, Any]:
    """Return an order as JSON."""
    from swathe.datasets.search_times import read_open_times

    return {
        "algorithm": check_text("algorithm", algorithm),
        "collection": collection,
        "time": read_open_times(time),
        "bbox": None if bbox is None else list(bbox),
        "parameters": dict(parameters or {}),
        "files": dict(files or {}),
    }


def _path_of(kind: str, label: str) -> tuple[str, dict[str, str]]:
    """Return the path of an algorithm or a library, and its version as a parameter."""
    name, at, version = check_text("name", label).partition("@")
    return f"{kind}/{quote(name, safe='')}", {"version": version} if at else {}


def _options(
    operation: str | None,
    format_: str | None,
    mode: Mode,
    fill: float | None,
    planes: Planes | None,
    bands: Sequence[str] | str,
    dataset: str | None,
    time_range: tuple[Any, Any] | None,
    own: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the options of a job as JSON.

    Raises:
        JobError: If an option is invalid.
        RegionError: If the planes are invalid.
    """
    from swathe.files.planes import plane_span
    from swathe.jobs.types import Options

    options = {
        "operation": operation,
        "format": format_,
        "mode": mode,
        "fill": fill,
        "planes": None if planes is None else plane_span(planes),
        "bands": bands or None,
        "dataset": dataset,
        "time": time_range,
        **own,
    }
    read = Options.from_mapping(options)
    values = read.as_dict()
    if not read.has_format:
        del values["format"]  # the portal's choice: arrays have that of their file
    return values
