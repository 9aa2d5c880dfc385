"""Types of settings, with the conditions that pydantic checks."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from swathe.core.value_errors import short_text
from swathe.sandbox import UserIds

HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")
AUTHORITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{2,}")
TOPIC = re.compile(r"[\w.-]{1,50}(?:/[\w.-]{1,50}){0,5}", re.ASCII)
LONGEST_LINE = 4000
ORIGIN = "http(s)://host[:port], with no path"


def is_address(host: str) -> bool:
    """Return whether a text is a host name or an IP address (IPv6 without brackets)."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return bool(HOST.fullmatch(host.lower())) and not host.startswith("[")
    return True


def _is_origin(text: str) -> bool:
    parts = urlsplit(text)
    port = parts.port
    host = parts.netloc if port is None else parts.netloc.rpartition(":")[0]
    is_complete = f"{parts.scheme}://{parts.netloc}" == text
    return is_complete and parts.scheme in ("http", "https") and bool(HOST.fullmatch(host))


def _is_line(text: str) -> bool:
    return not text or (text.isprintable() and not text.isspace() and len(text) <= LONGEST_LINE)


def _is_host_port(text: str) -> bool:
    name, _, port = text.rpartition(":") if re.search(r":\d+$", text) else (text, "", "1")
    return bool(HOST.fullmatch(name)) and 0 < int(port) < 65536


def _is_broker_url(text: str) -> bool:
    return text.startswith("mqtt://") and _is_host_port(text.removeprefix("mqtt://"))


def _full_path(raw: object) -> Path:
    if isinstance(raw, str) and raw.startswith(("/", "~/")):
        return Path(raw).expanduser()
    if isinstance(raw, Path):
        return raw
    raise ValueError(f"expected an absolute path, found {short_text(raw)}")


def _access_log(raw: object) -> object:
    if raw == "json" or isinstance(raw, bool):
        return raw
    raise ValueError(f"expected true, false or 'json', found {short_text(raw)}")


def _condition(requirement: str, is_met: Callable[[str], object]) -> AfterValidator:
    """Return a check of texts: one passes if `is_met` returns a true value for it."""

    def check(text: str) -> str:
        with suppress(ValueError):
            if is_met(text):
                return text
        raise ValueError(f"expected {requirement}, found {short_text(text)}")

    return AfterValidator(check)


Address = Annotated[str, _condition("a host name or IP address", is_address)]
HostPort = Annotated[str, _condition("host or host:port, in lower case", _is_host_port)]
Network = Annotated[
    str, _condition("IP addresses or networks, as 10.0.0.0/8", ipaddress.ip_network)
]
Origin = Annotated[
    str,
    _condition(f"'*' or {ORIGIN}", lambda text: text == "*" or _is_origin(text)),
]
PublicUrl = Annotated[
    str, _condition(ORIGIN, lambda text: not text or _is_origin(text.rstrip("/")))
]
PublicPage = Annotated[
    str,
    _condition(
        "http(s)://host[:port]/...",
        lambda text: not text or _is_origin("/".join(text.split("/", 3)[:3])),
    ),
    Field(max_length=1000, pattern=r"^[!-~]*$"),
]
Line = Annotated[
    str, _condition("printable text of up to 4,000 characters", lambda text: _is_line(text))
]
Identifier = Annotated[
    str, _condition("three or more letters, digits, '.', '-'", AUTHORITY.fullmatch)
]
StorePrefix = Annotated[str, _condition("NAME:prefix", len)]
Command = Annotated[str, _condition("a program and its arguments", shlex.split)]
UserRange = Annotated[
    str, _condition("FIRST:COUNT, as 70000:16", lambda text: not text or UserIds.parse(text))
]
BrokerUrl = Annotated[str, _condition("mqtt://HOST[:PORT]", _is_broker_url)]
Topic = Annotated[
    str, _condition("names of letters, digits, '_.-' with '/' between", TOPIC.fullmatch)
]
AccessLog = Annotated[bool | Literal["json"], BeforeValidator(_access_log)]
FullPath = Annotated[Path, BeforeValidator(_full_path)]
Count = Annotated[int, Field(ge=1, le=10**12)]
Slots = Annotated[int, Field(ge=0, le=10**6)]
Priority = Annotated[int, Field(ge=1, le=10)]
Positive = Annotated[float, Field(gt=0, le=1e12)]
