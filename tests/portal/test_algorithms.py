"""Algorithms of a portal: added, listed, shown and removed by their owners."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from swathe.portal.app import ProgramCheck, make_app, open_portal
from swathe.portal.config import config_of
from tests.support.algorithms import LIBRARY, LIBRARY_FILES, LST, PACKAGE, tar_of
from tests.support.box import USERS, box
from tests.support.catalogs import new_catalog

NAME = "lst-quarter-degree"


class Client:
    """Asks a portal in this process, as one of its users."""

    def __init__(self, app: Any, tokens: dict[str, str]) -> None:
        self.app, self.tokens = app, tokens

    def __call__(
        self,
        method: str,
        path: str,
        user: str = "ann",
        content: str | bytes = "",
        kind: str | None = None,
    ) -> httpx.Response:
        headers = {"Content-Type": "text/x-python" if kind is None else kind}
        if user in self.tokens:
            headers["Authorization"] = f"Bearer {self.tokens[user]}"

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            base = "http://127.0.0.1:8420/api"
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                return await client.request(method, path, content=content, headers=headers)

        return asyncio.run(ask())


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("algorithms")
    settings = {
        "catalog": {"database": new_catalog(folder / "c.sqlite")},
        "results": {"folder": str(folder / "results")},
        "access": {"tokens": "required"},
    }
    with open_portal(config_of(settings)) as portal:
        scopes = {"ann": ["read", "submit"], "bob": ["read", "submit"], "eve": ["read"]}
        scopes["root"] = ["admin"]
        add = portal.catalog.add_token
        tokens = {user: add(user, each)[0] for user, each in scopes.items()}
        yield Client(make_app(portal), tokens)


def test_a_version_is_added_once_and_never_changes(ask: Client) -> None:
    added = ask("POST", "/algorithms", content=LST)
    assert added.status_code == 201, added.text
    record = added.json()
    assert (record["name"], record["version"], record["owner"]) == (NAME, "1.2", "ann")
    again = ask("POST", "/algorithms", content=LST)
    assert (again.status_code, again.json()) == (200, record)
    other = ask("POST", "/algorithms", content=LST + "\n")
    assert other.status_code == 409
    assert "give it a new version" in other.json()["error"]
    assert ask("GET", "/algorithms", "eve").json() == {"algorithms": [record]}
    shown = ask("GET", f"/algorithms/{NAME}?version=1.2", "eve").json()
    assert shown["definition"]["inputs"]["granules"]["most"] == 288
    source = ask("GET", f"/algorithms/{NAME}/source", "eve")
    assert source.text == LST
    assert source.headers["content-type"].startswith("text/x-python")
    assert source.headers["content-disposition"].startswith("attachment")


def test_libraries_are_of_their_owner(ask: Client) -> None:
    package = tar_of(LIBRARY_FILES)
    record = ask("POST", "/libraries", content=package)
    assert (record.status_code, record.json()["owner"]) == (201, "ann")
    assert ask("POST", "/libraries", content=package).status_code == 200
    assert ask("POST", "/libraries", "eve", content=package).status_code == 403
    assert ask("POST", "/libraries", content=b"int one;").status_code == 422
    assert ask("GET", "/libraries").json() == {"libraries": [record.json()]}
    assert ask("GET", "/libraries", "bob").json() == {"libraries": []}
    shown = ask("GET", "/libraries/mylib?version=1.0").json()
    assert (shown["language"], shown["files"]["library.toml"]) == ("c", len(LIBRARY))
    text = PACKAGE.replace("version", 'libraries = ["mylib@1.0"]\nversion').replace("sums", "uses")
    user = tar_of({"algorithm.toml": text.encode(), "main.c": b"int main(void) {}"})
    refused = ask("POST", "/algorithms", "bob", content=user, kind="application/x-tar")
    assert refused.status_code == 422
    assert "there is no library 'mylib@1.0'" in refused.json()["error"]
    assert ask("POST", "/algorithms", content=user, kind="application/x-tar").status_code == 201
    assert ask("DELETE", "/libraries/mylib", "bob").status_code == 404
    assert ask("DELETE", "/libraries/mylib").status_code == 204
    assert ask("GET", "/libraries/mylib").status_code == 404


def test_a_package_is_added_as_a_tar(ask: Client) -> None:
    files = {"algorithm.toml": PACKAGE.encode(), "main.c": b"int main(void) {}"}
    plain = tar_of(files)
    files["algorithm.toml"] = PACKAGE.replace('version = "1"', 'version = "2"').encode()
    for form, kind, suffix in (
        (plain, "application/x-tar", "1.tar"),
        (gzip.compress(tar_of(files)), "application/gzip", "2.tar.gz"),
    ):
        assert ask("POST", "/algorithms", content=form, kind=kind).status_code == 201
        source = ask("GET", "/algorithms/sums-c/source")
        assert (source.content, source.headers["content-type"]) == (form, kind)
        assert source.headers["content-disposition"].endswith(f'"sums-c-{suffix}"')
    definition = ask("GET", "/algorithms/sums-c").json()["definition"]
    assert definition["build"] == {"language": "c", "sources": ["main.c"], "flags": ["-O2"]}
    hostile = ask("POST", "/algorithms", content=tar_of({"../x": b""}), kind="application/x-tar")
    assert hostile.status_code == 422
    assert "names of letters" in hostile.json()["error"]


def test_only_the_owner_changes_an_algorithm(ask: Client) -> None:
    ask("POST", "/algorithms", content=LST)
    newer = LST.replace('"1.2"', '"1.3"')
    assert ask("POST", "/algorithms", "bob", newer).status_code == 403
    assert ask("POST", "/algorithms", "eve", newer).status_code == 403
    assert ask("POST", "/algorithms", "nobody", newer).status_code == 401
    assert ask("DELETE", f"/algorithms/{NAME}", "bob").status_code == 403
    assert ask("DELETE", f"/algorithms/{NAME}?version=1.2", "ann").status_code == 204
    assert ask("GET", f"/algorithms/{NAME}").status_code == 404
    assert ask("POST", "/algorithms", content=LST).status_code == 201
    assert ask("DELETE", f"/algorithms/{NAME}", "root").status_code == 204
    assert ask("DELETE", f"/algorithms/{NAME}", "root").status_code == 404


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x = 1", "expected a comment that begins with"),
        (LST.replace(NAME, "reduce"), "a name that no operation of Swathe has, found 'reduce'"),
        (LST.replace(NAME, "../x"), "name: expected a name of lower-case letters"),
        (LST.replace("numpy", "numpi"), "found 'numpi'; is it numpy?"),
        (LST.replace("min_quality): ...", "quality): ..."), "2 errors"),
        (LST + "#" * 1_000_000, "expected at most"),
    ],
)
def test_what_is_no_algorithm_is_refused(ask: Client, content: str, said: str) -> None:
    answer = ask("POST", "/algorithms", content=content)
    assert (answer.status_code, answer.json()["kind"]) == (422, "AlgorithmError")
    assert said in answer.json()["error"]


def test_another_type_of_content_and_odd_names_are_refused(ask: Client) -> None:
    assert ask("POST", "/algorithms", content=LST, kind="text/html").status_code == 422
    for name in ("sum", "%2e%2e", "A%00", "x" * 63):
        assert ask("GET", f"/algorithms/{name}").status_code == 404
    assert ask("GET", f"/algorithms/{'x' * 64}").status_code == 422


def test_an_interpreter_that_does_not_start_is_told_at_the_start() -> None:
    section = {"python": "/usr/bin/no-python"}
    if USERS is not None:
        section["users"] = f"{USERS.first}:{USERS.count}"
    box()  # skips where none holds
    assert "/usr/bin/no-python" in ProgramCheck(config_of({"algorithms": section})).fault()
    section["python"] = "/usr/bin/python3"
    assert ProgramCheck(config_of({"algorithms": section})).fault() == ""
    assert ProgramCheck(config_of({"algorithms": section | {"run": False}})).fault() == ""
