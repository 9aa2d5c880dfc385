"""Staging of objects in archive classes of S3: `POST ?restore`, then `HEAD`.

Requests are signed by boto3, whose chain of credentials (environment, profile, machine) is that of
all AWS tools.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from swathe.core.errors import AccessError, OptionError, StagingError
from swathe.stores.staging.stager import ObjectPlace, StageProgress, Stager

if TYPE_CHECKING:
    from swathe.catalog.store_settings import Store

ON_TAPE = ("GLACIER", "DEEP_ARCHIVE")
"""Storage classes whose objects must be restored. GLACIER_IR is read at once."""
THREADS = 8
DAY_S = 86400.0
Answer = TypeVar("Answer")


class S3Restore(Stager):
    """Staging of objects of a bucket."""

    most_paths: ClassVar[int] = 10_000
    confirms: ClassVar[bool] = True

    def __init__(self, store: Store) -> None:
        """Set up; nothing is sent yet.

        Raises:
            OptionError: If boto3 is not installed.
        """
        parts = urlsplit(store.url)
        self._url, self._bucket = store.url, parts.netloc
        self._prefix = parts.path.strip("/")
        self._tier = store.options.get("staging_tier", "Bulk")
        self._client = _client(store)

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def locate(self, paths: Sequence[str]) -> dict[str, ObjectPlace]:
        """Return where objects are, one HEAD for each."""
        return dict(zip(paths, self._each(self._place, paths), strict=True))

    def stage(self, paths: Sequence[str], lifetime_s: float) -> str:
        """Ask for objects, all of them before any is waited for."""
        days = max(1, math.ceil(lifetime_s / DAY_S))
        self._each(lambda path: self._restore(path, days), paths)
        # S3 knows no requests; objects are polled by name.
        return "restore"

    def poll(self, token: str, paths: Sequence[str]) -> dict[str, StageProgress]:
        """Return the states of objects, one HEAD for each."""
        del token
        return dict(zip(paths, self._each(self._progress, paths), strict=True))

    def release(self, token: str, paths: Sequence[str]) -> None:
        """Do nothing: a restored copy goes by itself when its days are over."""
        del token, paths

    def evict(self, paths: Sequence[str]) -> None:
        """Fail: a restored copy cannot be removed before its days are over.

        Raises:
            StagingError: Always.
        """
        raise StagingError(
            f"{self._url}: expected a service that evicts, found S3: restored copies of "
            f"{len(paths)} objects go when their days are over"
        )

    def _each(self, act: Callable[[str], Answer], paths: Sequence[str]) -> list[Answer]:
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(act, paths))

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}" if self._prefix else path

    def _head(self, path: str) -> dict[str, Any] | None:
        """Return the headers of an object; `None` if there is none."""
        from botocore.exceptions import ClientError

        try:
            return self._call("head_object", path)
        except ClientError as error:
            if _status(error) == 404:
                return None
            raise self._error("HEAD", path, error) from error

    def _place(self, path: str) -> ObjectPlace:
        head = self._head(path)
        if head is None:
            return ObjectPlace(path, "lost", reason="no such object")
        size = head.get("ContentLength")
        is_here = head.get("StorageClass") not in ON_TAPE or _restore_state(head) == "disk"
        return ObjectPlace(path, "disk" if is_here else "nearline", size)

    def _progress(self, path: str) -> StageProgress:
        head = self._head(path)
        if head is None:
            return StageProgress(path, "failed", reason="no such object")
        if head.get("StorageClass") not in ON_TAPE:
            return StageProgress(path, "disk")
        state = _restore_state(head)
        if state is None:
            # Refused later, or its days are over.
            return StageProgress(path, "failed", reason="no restore is going on")
        return StageProgress(path, "disk" if state == "disk" else "active")

    def _restore(self, path: str, days: int) -> None:
        """Ask for an object, or for more days of a restored one.

        Raises:
            AccessError: If access is denied.
            StagingError: If the restore is refused.
        """
        from botocore.exceptions import ClientError

        for tier in dict.fromkeys((self._tier, "Standard")):
            request = {"Days": days, "GlacierJobParameters": {"Tier": tier}}
            try:
                self._call("restore_object", path, RestoreRequest=request)
                return
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code")
                if code in ("RestoreAlreadyInProgress", "InvalidObjectState"):
                    # It is on its way, or of a class that is read at once: `poll` finds out.
                    return
                if code != "GlacierExpeditedRetrievalNotAvailable" or tier == "Standard":
                    raise self._error("POST ?restore", path, error) from error

    def _call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError

        try:
            answer: dict[str, Any] = getattr(self._client, method)(
                Bucket=self._bucket, Key=self._key(path), **arguments
            )
        except BotoCoreError as error:
            raise StagingError(f"{self._url}/{path}: {error}") from error
        return answer

    def _error(self, action: str, path: str, error: Any) -> AccessError | StagingError:
        status, code = _status(error), error.response.get("Error", {}).get("Code")
        kind = AccessError if status in (401, 403) else StagingError
        return kind(f"{action} {self._url}/{path}: expected success, found {status} {code}")


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _restore_state(head: dict[str, Any]) -> str | None:
    """Return `active` or `disk`, from the header x-amz-restore; `None` if there is none."""
    ongoing = re.search(r'ongoing-request="(true|false)"', str(head.get("Restore") or ""))
    if ongoing is None:
        return None
    return "active" if ongoing[1] == "true" else "disk"


def _client(store: Store) -> Any:
    try:
        import boto3
        from botocore import UNSIGNED
        from botocore.config import Config
    except ImportError:
        raise OptionError(
            f"store {store.name}: expected boto3 for staging=s3-restore: pip install swathe[tape]"
        ) from None
    options = store.options
    session = boto3.Session(profile_name=options.get("profile"), region_name=options.get("region"))
    settings: dict[str, Any] = {"retries": {"mode": "standard", "max_attempts": 5}}
    settings |= {"max_pool_connections": THREADS}
    if options.get("anonymous") == "true":
        settings["signature_version"] = UNSIGNED
    endpoint = options.get("staging_endpoint") or options.get("endpoint")
    region = session.region_name or "us-east-1"
    return session.client(
        "s3", endpoint_url=endpoint, region_name=region, config=Config(**settings)
    )
