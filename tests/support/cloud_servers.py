"""Servers of Azure's and Google's kind for the tests, and one that repeats what it was told."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_servers import Handler, serving
from tests.support.servers import ROOT, free_port, guard, run_server

ACCOUNT = "devstoreaccount1"
# Known to all: the key of every emulator (https://learn.microsoft.com/azure/storage/common/storage-connect-azurite).
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "GCE_", "IDENTITY_")


def forget_credentials(patch: pytest.MonkeyPatch) -> None:
    """Take all credentials for buckets out of the environment."""
    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        patch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "CLOUDSDK_CONFIG"):
        patch.setenv(name, "/nonexistent")
    patch.setenv("NO_GCE_CHECK", "true")  # tests may run on a machine of Google's


def set_environment(stack: contextlib.ExitStack, variables: dict[str, str]) -> None:
    """Set these variables, and no other credentials, until the stack ends."""
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    forget_credentials(patch)
    for variable, value in variables.items():
        patch.setenv(variable, value)


@dataclass(frozen=True)
class Azurite:
    """A running Azurite."""

    url: str

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead clients to it."""
        return {"AZURE_STORAGE_ENDPOINT": self.url, "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY}

    def put(self, container: str, key: str, content: bytes) -> None:
        """Store a blob as a client does."""
        with self._client() as client:
            client.get_blob_client(container, key).upload_blob(content, overwrite=True)

    def make(self, container: str, public: bool = False) -> None:
        """Make a container, whose blobs anybody may read or not."""
        with self._client() as client:
            client.create_container(container, public_access="blob" if public else None)

    def sas(self, container: str) -> str:
        """Give a token to read the blobs of a container for an hour."""
        from azure.storage.blob import ContainerSasPermissions, generate_container_sas

        token: str = generate_container_sas(
            ACCOUNT,
            container,
            account_key=ACCOUNT_KEY,
            permission=ContainerSasPermissions(read=True),
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        return token

    def _client(self) -> Any:
        from azure.storage.blob import BlobServiceClient

        return BlobServiceClient(self.url, credential=ACCOUNT_KEY, api_version="2023-11-03")


@contextmanager
def azurite() -> Iterator[Azurite]:
    """Run Azurite 3.35.0.

    Its answers have ETag ("0x..."), Last-Modified and Accept-Ranges; If-Match is respected, and
    signatures and tokens are checked. Unlike Azure: the account is the first part of the path; to
    anonymous requests for what is private it says 403, where Azure says 404, or 409 for an account
    that allows no public access; bearer tokens are known by `--oauth` over TLS only.
    """
    executable = ROOT / ".tools/node_modules/.bin/azurite-blob"
    program = os.environ.get("AZURITE_BLOB") or shutil.which("azurite-blob") or str(executable)
    if not Path(program).exists():
        pytest.skip("azurite is not installed: see .ci/run")
    pytest.importorskip("azure.storage.blob")
    port = free_port()
    command = [program, "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--inMemoryPersistence", "--disableTelemetry", "--silent"]
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="swathe-test-az-"))
        stack.enter_context(run_server(command, Path(place), port))
        yield Azurite(f"http://127.0.0.1:{port}/{ACCOUNT}")


@dataclass(frozen=True)
class Gcs:
    """A running fake-gcs-server; `url` may lead through a guard, `direct_url` does not."""

    url: str
    direct_url: str

    def make(self, bucket: str) -> None:
        """Make a bucket."""
        body = json.dumps({"name": bucket}).encode()
        self._post("storage/v1/b?project=test", "application/json", body)

    def put(self, bucket: str, key: str, content: bytes) -> None:
        """Store an object."""
        query = urllib.parse.urlencode({"uploadType": "media", "name": key})
        path = f"upload/storage/v1/b/{bucket}/o?{query}"
        self._post(path, "application/octet-stream", content)

    def _post(self, path: str, kind: str, body: bytes) -> None:
        headers = {"Content-Type": kind}
        request = urllib.request.Request(f"{self.direct_url}/{path}", body, headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            assert answer.status == 200


@contextmanager
def fake_gcs(token: str | None = None) -> Iterator[Gcs]:
    """Run fake-gcs-server 1.49.3; with a token, behind `guard`.

    Its answers have ETag (MD5 in base 64), Last-Modified and Accept-Ranges. Unlike Google's:
    If-Match is ignored; who asks is not looked at; errors are plain text; nothing is unpacked on
    the way.
    """
    executable = ROOT / ".tools/bin/fake-gcs-server"
    program = (
        os.environ.get("FAKE_GCS_SERVER") or shutil.which("fake-gcs-server") or str(executable)
    )
    if not Path(program).exists():
        pytest.skip("fake-gcs-server is not installed: see .ci/run")
    port = free_port()
    command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    command += ["-backend", "memory", "-public-host", "127.0.0.1"]
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="swathe-test-gs-"))
        stack.enter_context(run_server(command, Path(place), port))
        url = f"http://127.0.0.1:{port}"
        yield Gcs(url if token is None else stack.enter_context(guard(url, token)), url)


@dataclass
class Repeater:
    """A running server that refuses all, and repeats the request in its answer."""

    url: str
    heard: list[str] = field(default_factory=list)
    """Authorization, path and query of the requests."""


@contextmanager
def repeater() -> Iterator[Repeater]:
    """Run a server that tells all it hears, as no server should."""

    class Repeating(Handler):
        def do_GET(self) -> None:
            heard = f"{self.headers.get('Authorization')} {self.path}"
            repeater_server.heard.append(heard)
            self.answer(403, heard.encode(), {"Content-Type": "text/plain"})

    with serving(Repeating) as url:
        repeater_server = Repeater(url)
        yield repeater_server
