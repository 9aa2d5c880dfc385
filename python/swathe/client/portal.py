"""A remote portal: `swathe.connect`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from swathe.client.connection import PortalConnection
from swathe.client.job import RemoteJob
from swathe.core.argument_checks import check_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

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


class RemotePortal:
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

    @property
    def url(self) -> str:
        """URL of the portal."""
        return self._connection.url

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

    def pool(self) -> dict[str, Any]:
        """Return the state of the worker pool, with the cached objects of its workers."""
        return self._connection.get_json("pool")


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
