"""Hosts of their own on this machine: namespaces of the network. They need root and iproute2."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """A host: what it is called, and where others of its network reach it."""

    name: str
    address: str

    def running(self, *command: str) -> list[str]:
        """Give what runs a command there."""
        return ["ip", "netns", "exec", self.name, *command]


def ip(*arguments: str) -> None:
    """Change the network."""
    subprocess.run(("ip", *arguments), check=True)


@contextmanager
def bridge(name: str, network: str) -> Iterator[None]:
    """Have a network that hosts are connected to; this machine is number 1 in it."""
    ip("link", "add", name, "type", "bridge")
    try:
        ip("address", "add", f"{network}.1/24", "dev", name)
        ip("link", "set", name, "up")
        yield
    finally:
        ip("link", "delete", name)


@contextmanager
def host(between: str, network: str, number: int) -> Iterator[Host]:
    """Have a host, connected by a bridge; they are numbered from 0."""
    namespace = Host(f"{between}-{number}", f"{network}.{number + 2}")
    ip("netns", "add", namespace.name)
    try:
        # The plug has the name of its host: at most 15 characters.
        ip(
            "link",
            "add",
            namespace.name,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            namespace.name,
        )
        ip("link", "set", namespace.name, "master", between)
        ip("link", "set", namespace.name, "up")
        ip(
            "-n",
            namespace.name,
            "address",
            "add",
            f"{namespace.address}/24",
            "dev",
            "eth0",
        )
        for each in ("lo", "eth0"):
            ip("-n", namespace.name, "link", "set", each, "up")
        yield namespace
    finally:
        ip("netns", "delete", namespace.name)
        # What was in it is gone only when its last process is.
        subprocess.run(
            ("ip", "link", "delete", namespace.name), check=False, stderr=subprocess.DEVNULL
        )
