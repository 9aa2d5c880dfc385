"""A portal to attack: it wants tokens, and its store holds links that lead out of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from swathe.catalog import Catalog
from tests.support.portals import (
    SECOND_S,
    RunningPortal,
    add_survey,
    database_in,
    served,
    targets_in,
)

SETTINGS = '[access]\ntokens = "required"\nhosts = {hosts}\n'
USERS = {
    "ann": ["read", "submit"],
    "bob": ["read", "submit"],
    "eve": ["read"],
    "sue": ["submit"],
    "root": ["admin"],
}
"""Users and the scopes of their tokens."""
SECRET = b"the secret outside of the store"


@dataclass
class AttackTarget:
    """A running portal, and a token for each of the `USERS`."""

    served: RunningPortal
    tokens: dict[str, str]

    def client(self, user: str | None) -> httpx.Client:
        """Return a client that sends the token of a user, or none."""
        headers = {"Authorization": f"Bearer {self.tokens[user]}"} if user else {}
        return httpx.Client(base_url=self.served.url, headers=headers, timeout=SECOND_S)

    def targets(self, count: int) -> dict[str, list[Any]]:
        """Return the first targets of the survey."""
        return {name: values[:count] for name, values in targets_in(self.served.folder).items()}

    def send(self, request: bytes) -> bytes:
        """Send bytes that no client would, and return the answer until the connection ends."""
        host, _, port = self.served.host.partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(request)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        return answer


@contextmanager
def attacked(
    folder: Path, targets: int = 20, hosts: tuple[str, ...] = ("127.0.0.1:9",), settings: str = ""
) -> Iterator[AttackTarget]:
    """Serve such a portal, which may also read URLs of some hosts."""
    add_survey(folder, targets=targets)
    outside = folder / "outside"
    outside.mkdir()
    (outside / "secret.fit").write_bytes(SECRET)
    (folder / "survey" / "link.fit").symlink_to(outside / "secret.fit")
    (folder / "survey" / "linked").symlink_to(outside, target_is_directory=True)
    with Catalog.open(database_in(folder)) as catalog:
        tokens = {user: catalog.add_token(user, scopes)[0] for user, scopes in USERS.items()}
    with served(folder, SETTINGS.format(hosts=list(hosts)) + settings) as running:
        yield AttackTarget(running, tokens)
