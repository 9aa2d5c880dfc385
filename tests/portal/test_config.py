"""Settings of a portal: what may be said, and what is told of what may not."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from swathe.algorithms.group_run import program_lanes
from swathe.catalog.records.jobs import Share
from swathe.core.errors import SettingsError
from swathe.core.host import cores
from swathe.portal.app import limits_of
from swathe.portal.config import AlgorithmSettings, Config, LimitSettings, config_of, read_config

MAIL = {"server": "mail.example", "sender": "portal@archive.example"}
PAGE = Path(__file__).parents[2] / "docs/portal.md"


def test_defaults_fit_a_laptop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.delenv("SWATHE_DATABASE")
    config = read_config(None)
    assert config.server.host == "127.0.0.1"
    assert config.access.tokens == "none"
    assert config.catalog.database == "sqlite:////data/swathe/catalog.sqlite"
    assert config.results.folder == Path("/data/swathe/results")


@pytest.mark.skipif(not PAGE.exists(), reason="not run from the sources")
def test_the_page_names_every_limit_with_its_default() -> None:
    page = PAGE.read_text()
    for limit in fields(LimitSettings):
        (told,) = re.findall(rf"^\| `limits\.{limit.name}` \| (\S+) \|", page, re.MULTILINE)
        assert float(told) == limit.default, limit.name


def test_every_section_is_read(tmp_path: Path) -> None:
    path = tmp_path / "swathe.toml"
    path.write_text(
        """
        [server]
        host = "::1"
        port = 0
        url = "https://archive.example"
        [catalog]
        database = "sqlite:////data/c.sqlite"
        [results]
        folder = "/data/results"
        keep_days = 2
        [access]
        tokens = "required"
        origins = ["https://viewer.example", "*"]
        hosts = ["archive.example", "10.0.0.1:8080", "[::1]:80"]
        [limits]
        jobs = 3
        body_mb = 0.5
        [shares."ann@x"]
        slots = 2
        [vo]
        authority = "archive.example"
        title = "An archive"
        """
    )
    config = read_config(path)
    assert (config.server.port, config.server.url) == (0, "https://archive.example")
    assert config.results.keep_days == 2.0
    assert config.access.hosts == ("archive.example", "10.0.0.1:8080", "[::1]:80")
    assert (config.limits.jobs, config.limits.body_mb) == (3, 0.5)
    shares = limits_of(config)
    assert shares.share_of("ann@x") == Share(2, 20_000_000_000, 5)
    assert shares.share_of("bob") == Share(0, 20_000_000_000, 5)
    assert config.vo.title == "An archive"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"sever": {}}, "unknown section: 'sever'; known are server, catalog"),
        ({"server": {"prt": 1}}, "unknown key in [server]: 'prt'; known are host, port, url"),
        ({"server": 4}, "server: expected a section [server], found 4"),
        ({"server": {"port": "80"}}, "server.port: expected a whole number, found '80'"),
        ({"server": {"port": True}}, "server.port: expected a whole number, found true"),
        ({"server": {"port": 65536}}, "server.port: expected at most 65535, found 65536"),
        ({"server": {"host": "a b"}}, "server.host: expected a host name or IP address"),
        ({"server": {"host": ""}}, "server.host: expected a host name"),
        ({"server": {"url": "archive.example"}}, "server.url: expected http(s)://host[:port]"),
        ({"server": {"url": "http://a/b"}}, "server.url: expected http(s)://host[:port]"),
        ({"results": {"folder": "results"}}, "results.folder: expected an absolute path"),
        (
            {"results": {"folder": "/data", "store": "lake:jobs"}},
            "results.store: expected either this or results.folder, not both, found 'lake:jobs'",
        ),
        ({"results": {"store": 5}}, "results.store: expected text, found 5"),
        ({"results": {"store": ""}}, "results.store: expected NAME:prefix, found ''"),
        (
            {"results": {"scratch": "/data"}},
            "results.scratch: expected to come with results.store, found '/data'",
        ),
        (
            {"results": {"store": "lake:", "scratch": "data"}},
            "results.scratch: expected an absolute path, found 'data'",
        ),
        ({"results": {"keep_days": 31}}, "results.keep_days: expected at most limits.longest_days"),
        ({"results": {"keep_days": float("nan")}}, "results.keep_days: expected at most"),
        ({"access": {"tokens": "some"}}, "access.tokens: expected 'none' or 'required', found"),
        ({"access": {"origins": "*"}}, "access.origins: expected a list, found '*'"),
        ({"access": {"origins": ["https://a/b"]}}, "access.origins: expected '*' or http(s)://"),
        ({"access": {"hosts": ["http://a"]}}, "access.hosts: expected host or host:port"),
        ({"access": {"hosts": ["a:99999"]}}, "access.hosts: expected host or host:port"),
        ({"access": {"hosts": ["*"]}}, "access.hosts: expected host or host:port"),
        ({"algorithms": {"programs": -1}}, "algorithms.programs: expected at least 0, found -1"),
        ({"algorithms": {"users": "70000"}}, "as 70000:16, with a COUNT of 2"),
        ({"algorithms": {"users": "0:4"}}, "algorithms.users: expected FIRST:COUNT"),
        ({"limits": {"jobs": 0}}, "limits.jobs: expected at least 1, found 0"),
        ({"limits": {"jobs": 1.5}}, "limits.jobs: expected a whole number, found 1.5"),
        ({"limits": {"body_mb": -1.0}}, "limits.body_mb: expected more than 0, found -1.0"),
        ({"shares": 4}, "shares: expected sections [shares.USER], found 4"),
        ({"shares": {"a b": {}}}, "shares: expected names of users, as [shares.ann], found 'a b'"),
        ({"shares": {"ann": {"slots": -1}}}, "shares.ann.slots: expected at least 0, found -1"),
        ({"shares": {"ann": {"priority": 11}}}, "shares.ann.priority: expected at most 10"),
        ({"shares": {"ann": {"jobs": 1}}}, "unknown key in [shares.ann]: 'jobs'; known are slots"),
        ({"vo": {"authority": "a/b"}}, "vo.authority: expected three or more letters"),
        ({"server": {"host": "0.0.0.0"}}, "server.host: 0.0.0.0 can be reached from other"),
        ({"server": {"host": "::"}}, "server.host: :: can be reached from other machines"),
        ({"server": {"host": "::"}, "access": {"open": True}}, "vo.authority: expected a name"),
        ({"mail": {"port": 25}}, "mail.port: expected to come with mail.server, found '25'"),
        ({"mail": {"server": "mail.example"}}, "mail.sender: expected one address"),
        ({"mail": {**MAIL, "user": "u"}}, "mail.user: expected it and mail.password_file"),
        (
            {"mail": {**MAIL, "user": "u", "password_file": "/p", "tls": "none"}},
            "mail.tls: expected 'starttls' or 'tls' to send a password, found 'none'",
        ),
        ({"mqtt": {"topic": "a"}}, "mqtt.topic: expected to come with mqtt.url, found 'a'"),
        ({"mqtt": {"url": "http://broker"}}, "mqtt.url: expected mqtt://HOST[:PORT], found"),
        ({"mqtt": {"url": "mqtt://u:p@broker"}}, "mqtt.url: expected mqtt://HOST[:PORT], found"),
        ({"mqtt": {"url": "mqtt://b", "topic": "a/#"}}, "mqtt.topic: expected names of letters"),
        (
            {"mqtt": {"url": "mqtt://b", "user": "u", "password_file": "/p"}},
            "mqtt.tls: expected true to send a password, found false",
        ),
        (
            {
                "server": {"host": "0.0.0.0"},
                "access": {"open": True},
                "vo": {"authority": "archive.example"},
                "mail": MAIL,
            },
            "server.url: is missing; mail.server needs it",
        ),
        ({"server": {"proxies": ["proxy.example"]}}, "server.proxies: expected IP addresses"),
        ({"limits": {"share": 2.0}}, "limits.share: expected at most 1, found 2.0"),
        ({"server": {"host": "archive.example"}}, "set access.tokens = 'required', or access.open"),
    ],
)
def test_what_makes_no_sense_is_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError) as raised:
        config_of(given)
    assert told in str(raised.value)


@pytest.mark.parametrize("access", [{"tokens": "required"}, {"open": True}])
def test_beyond_loopback_with_tokens_or_when_told(access: dict[str, Any]) -> None:
    vo = {"authority": "archive.example"}
    config = config_of({"server": {"host": "0.0.0.0"}, "access": access, "vo": vo})
    assert config.server.host == "0.0.0.0"


def test_address_given_at_start_is_checked_too() -> None:
    assert Config().at(port=0).server.port == 0
    with pytest.raises(SettingsError, match="can be reached from other machines"):
        Config().at(host="0.0.0.0")
    with pytest.raises(SettingsError, match=r"server\.host: expected a host name"):
        Config().at(host="a b")


@pytest.mark.parametrize("content", [b"[server", b"\xff", b"a = 1\na = 2"])
def test_what_is_no_toml_is_told_with_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "swathe.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"swathe\.toml: is not valid TOML: "):
        read_config(path)


def test_results_in_a_store() -> None:
    config = config_of({"results": {"store": "lake:jobs", "scratch": "/data/scratch"}})
    assert (config.results.store, config.results.scratch) == ("lake:jobs", Path("/data/scratch"))
    assert config_of({"results": {"store": "lake:"}}).results.scratch is None


def test_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml: cannot be read: No such file"):
        read_config(tmp_path / "none.toml")


def test_password_of_database_is_not_shown() -> None:
    config = config_of({"catalog": {"database": "postgresql://u:hush-hush@host/name"}})
    assert "hush-hush" not in repr(config)


def test_a_password_is_one_line_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "password"
    mail = {**MAIL, "user": "portal", "password_file": str(path)}
    settings = config_of({"mail": mail}).mail
    for content in (b"", b"\n", b"a\nb\n", b"x" * 2000):
        path.write_bytes(content)
        with pytest.raises(SettingsError, match=r"mail\.password_file: .* expected one line"):
            _ = settings.mail_server
    path.unlink()
    with pytest.raises(SettingsError, match=r"mail\.password_file: .* cannot be read: No such"):
        _ = settings.mail_server
    path.write_text("hush\n")
    server = settings.mail_server
    assert server is not None
    assert (server.password, server.tls) == ("hush", "starttls")


def test_all_errors_are_named_at_once() -> None:
    content = {"server": {"port": "x", "hosts": 1}, "servr": {}, "limits": {"jobs": "many"}}
    with pytest.raises(SettingsError) as caught:
        config_of(content)
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        *("server.port", "unknown key in [server]", "unknown section", "limits.jobs"),
    ]


def test_programs_are_as_many_as_the_operator_says_and_user_ids_allow() -> None:
    assert program_lanes(AlgorithmSettings().box) == cores()
    assert program_lanes(AlgorithmSettings(programs=18).box) == 18
    assert program_lanes(AlgorithmSettings(programs=18, users="70000:9").box) == 8
