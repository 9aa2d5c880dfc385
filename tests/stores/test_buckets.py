"""Buckets of S3, Google and Azure: found credentials are used and never shown; errors are clear."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import AccessError, NotFoundError, SourceError, SwatheError
from tests.support import cloud_servers, servers
from tests.support.cloud_servers import ACCOUNT, ACCOUNT_KEY, Azurite
from tests.support.fits_frames import contents, noise, swathe_command
from tests.support.servers import TOKEN

IMAGE = noise(30, (300, 400))
BOX = (100, 200, 30, 20)
OTHER_KEY = base64.b64encode(bytes(range(64))).decode()
SAS = "sv=2023-11-03&sr=c&sp=r&se=2099-01-01T00%3A00%3A00Z&sig=c2VjcmV0LXNpZ25hdHVyZS1odXNo%3D"
S3 = {
    "AWS_ALLOW_HTTP": "true",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "an-access-key-id",
    "AWS_SECRET_ACCESS_KEY": "secret-access-key-hush",
    "AWS_SESSION_TOKEN": "session-token-hush-hush",
}

Environment = Callable[..., None]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Environment:
    """Set variables; no others lead to credentials."""
    cloud_servers.forget_credentials(monkeypatch)

    def set_all(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_all


@pytest.fixture(scope="module")
def azurite() -> Iterator[Azurite]:
    """One with a container of ours, `frames`, and one for all, `public`."""
    with cloud_servers.azurite() as running:
        for name in ("frames", "public"):
            running.make(name, public=name == "public")
            running.put(name, "dr1/a b.fit", contents(IMAGE, "fit"))
        yield running


@pytest.fixture(scope="module")
def gcs() -> Iterator[cloud_servers.Gcs]:
    """One with a bucket `frames`, for those with the token."""
    with cloud_servers.fake_gcs(TOKEN) as running:
        running.make("frames")
        running.put("frames", "dr1/a b.fit", contents(IMAGE, "fit"))
        yield running


def cut(url: str) -> NDArray[Any]:
    """A piece that is not among the first bytes."""
    found: NDArray[Any] = swathe.cut(url, box=BOX).data
    return found


def expected() -> NDArray[Any]:
    x0, y0, width, height = BOX
    return IMAGE[y0 : y0 + height, x0 : x0 + width]


# Azure.


def test_azure_by_key_token_or_nothing(azurite: Azurite, environment: Environment) -> None:
    environment(AZURE_STORAGE_ENDPOINT=azurite.url)
    np.testing.assert_array_equal(cut("az://public/dr1/a b.fit"), expected())
    for variable in ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY"):
        environment(**{variable: ACCOUNT_KEY if "KEY" in variable else azurite.sas("frames")})
        np.testing.assert_array_equal(cut("az://frames/dr1/a b.fit"), expected())
    environment(AZURE_STORAGE_ACCOUNT_KEY=OTHER_KEY, AZURE_SKIP_SIGNATURE="true")
    np.testing.assert_array_equal(cut("az://public/dr1/a b.fit"), expected())


def test_azure_key_by_the_name_of_the_command_line(
    azurite: Azurite, environment: Environment
) -> None:
    environment(AZURE_STORAGE_ACCOUNT=ACCOUNT, AZURE_STORAGE_KEY=ACCOUNT_KEY)
    environment(AZURE_ENDPOINT=azurite.url)
    np.testing.assert_array_equal(cut("az://frames/dr1/a b.fit"), expected())


def test_azure_replaced_blob_is_noticed(azurite: Azurite, environment: Environment) -> None:
    environment(**azurite.environment)
    azurite.put("frames", "changing.fit", contents(noise(31, (900, 1000)), "fit"))
    section = swathe.open("az://frames/changing.fit").image().section
    azurite.put("frames", "changing.fit", contents(noise(32, (900, 1000)), "fit"))
    with pytest.raises(SourceError, match="changed while it was read"):
        section[800:810, 5:9]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("az://frames/none.fit", "The specified blob does not exist$"),
        ("az://nothing/none.fit", "The specified container does not exist$"),
    ],
)
def test_azure_says_whether_container_or_blob_is_missing(
    url: str, said: str, azurite: Azurite, environment: Environment
) -> None:
    environment(**azurite.environment)
    with pytest.raises(NotFoundError, match=f"^{url}: not found: {said}"):
        cut(url)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "asked anonymously: no credentials in AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS"),
        ({"AZURE_SKIP_SIGNATURE": "true"}, "asked anonymously, as set"),
        ({"AZURE_STORAGE_ACCOUNT_KEY": OTHER_KEY}, "asked with AZURE_STORAGE_ACCOUNT_KEY"),
        ({"AZURE_STORAGE_SAS_TOKEN": SAS}, "asked with AZURE_STORAGE_SAS_TOKEN"),
    ],
)
def test_azure_refusal_says_what_was_tried(
    variables: dict[str, str], said: str, azurite: Azurite, environment: Environment
) -> None:
    environment(AZURE_STORAGE_ENDPOINT=azurite.url, **variables)
    with pytest.raises(AccessError, match=said) as caught:
        cut("az://frames/dr1/a b.fit")
    assert "403" in str(caught.value) and "authenticate the request" in str(caught.value)
    for secret in (OTHER_KEY, SAS, SAS.partition("sig=")[2], "hush"):
        assert secret not in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "which account"),
        ({"AZURE_STORAGE_ACCOUNT_NAME": "no/account"}, "small letters and digits"),
        (
            {"AZURE_STORAGE_ACCOUNT_NAME": "survey", "AZURE_STORAGE_ACCOUNT_KEY": "no-key-hush"},
            "AZURE_STORAGE_ACCOUNT_KEY holds no access key",
        ),
        (
            {"AZURE_STORAGE_ENDPOINT": "http://198.51.100.1/survey", "AZURE_STORAGE_TOKEN": TOKEN},
            "would send a token over http",
        ),
        ({"AZURE_STORAGE_ENDPOINT": "ftp://survey.example"}, "no http"),
    ],
)
def test_azure_settings_that_cannot_work(
    variables: dict[str, str], said: str, environment: Environment
) -> None:
    environment(**variables)
    with pytest.raises(SourceError, match=said) as caught:
        cut("az://frames/a.fit")
    assert "hush" not in str(caught.value)


def test_stores_of_the_catalogue(
    azurite: Azurite,
    gcs: cloud_servers.Gcs,
    environment: Environment,
    tmp_path: Path,
) -> None:
    environment(SWATHE_DATABASE=f"sqlite:///{tmp_path}/c.sqlite")
    with Catalog.open() as catalog:
        options = {"endpoint": azurite.url, "account": ACCOUNT}
        catalog.add_store("blobs", "az://frames/dr1", options=options)
        catalog.add_store("open", "az://public", options=options | {"anonymous": "true"})
        catalog.add_store("google", "gs://frames/dr1", options={"endpoint": gcs.url})
    environment(AZURE_STORAGE_ACCOUNT_KEY=ACCOUNT_KEY, GOOGLE_BEARER_TOKEN=TOKEN)
    for name in ("blobs:a b.fit", "google:a b.fit", "open:dr1/a b.fit"):
        np.testing.assert_array_equal(cut(name), expected())
    environment(AZURE_STORAGE_ACCOUNT_KEY=OTHER_KEY)
    np.testing.assert_array_equal(cut("open:dr1/a b.fit"), expected())
    with pytest.raises(AccessError):
        cut("blobs:a b.fit")
    ran = swathe_command("info", "google:a b.fit", "--json")
    assert json.loads(ran.stdout)["hdus"][0]["shape"] == [300, 400]


# Google.


def test_google_token_of_the_environment(gcs: cloud_servers.Gcs, environment: Environment) -> None:
    environment(GOOGLE_BASE_URL=gcs.url, GOOGLE_BEARER_TOKEN=TOKEN)
    np.testing.assert_array_equal(cut("gs://frames/dr1/a b.fit"), expected())
    for url in ("gs://frames/none.fit", "gs://nothing/a.fit"):
        with pytest.raises(NotFoundError, match=url):
            cut(url)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "401 Unauthorized; asked anonymously: no credentials in GOOGLE_APPLICATION_CREDENTI"),
        ({"GOOGLE_BEARER_TOKEN": "some-hush"}, "403 Forbidden; asked with GOOGLE_BEARER_TOKEN"),
    ],
)
def test_google_refusal_says_what_was_tried(
    variables: dict[str, str], said: str, gcs: cloud_servers.Gcs, environment: Environment
) -> None:
    environment(GOOGLE_BASE_URL=gcs.url, **variables)
    with pytest.raises(AccessError, match=said) as caught:
        cut("gs://frames/dr1/a b.fit")
    assert "hush" not in str(caught.value)


def test_google_token_of_the_machine(
    gcs: cloud_servers.Gcs, environment: Environment, tmp_path: Path
) -> None:
    if not Path(servers.NGINX).exists():
        pytest.skip("nginx is not installed")
    with servers.nginx(tmp_path) as metadata:
        answer = metadata.folder / "computeMetadata/v1/instance/service-accounts/default/token"
        answer.parent.mkdir(parents=True)
        answer.write_text(json.dumps({"access_token": TOKEN, "expires_in": 3600}))
        environment(GCE_METADATA_HOST=metadata.host, GOOGLE_BASE_URL=gcs.url)
        for _ in range(3):
            np.testing.assert_array_equal(cut("gs://frames/dr1/a b.fit"), expected())
        # One token serves all objects.
        assert len(metadata.requests()) == 1
        with cloud_servers.repeater() as server:
            environment(GOOGLE_BASE_URL=server.url)
            with pytest.raises(AccessError, match=r"Bearer \.{3} /frames/a") as said:
                cut("gs://frames/a.fit")
        assert TOKEN not in str(said.value)


@pytest.mark.parametrize("content", [None, "", '"a-secret-hush"', '{"type": "a-secret-hush"}'])
def test_google_credentials_that_cannot_be_used(
    content: str | None, environment: Environment, tmp_path: Path
) -> None:
    path = tmp_path / "credentials.json"
    if content is not None:
        path.write_text(content)
    for variable in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"):
        environment(**{variable: str(path)})
        with pytest.raises(SourceError, match=f"the credentials file {path}: ") as caught:
            cut("gs://frames/a.fit")
        assert "hush" not in str(caught.value)


def test_google_token_is_not_sent_over_plain_http(environment: Environment) -> None:
    environment(GOOGLE_BASE_URL="http://198.51.100.1", GOOGLE_BEARER_TOKEN=TOKEN)
    with pytest.raises(SourceError, match="would send a token over http") as caught:
        cut("gs://frames/a.fit")
    assert TOKEN not in str(caught.value)


# All.


def service_account(path: Path) -> Any:
    """Write the file of a service account; gives its public key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    fields = {
        "type": "service_account",
        "private_key": pem.decode(),
        "private_key_id": "1",
        "client_email": "reader@survey.example",
    }
    path.write_text(json.dumps(fields))
    return key.public_key()


def test_google_service_account_signs_its_tokens(environment: Environment, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    public = service_account(tmp_path / "account.json")
    environment(GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "account.json"))
    with cloud_servers.repeater() as server:
        environment(GOOGLE_BASE_URL=server.url)
        with pytest.raises(AccessError, match=r"asked with the credentials file .*account\.json"):
            cut("gs://frames/a.fit")
    token = server.heard[0].split()[1]
    signed, _, signature = token.rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    public.verify(raw, signed.encode(), padding.PKCS1v15(), hashes.SHA256())


@pytest.mark.parametrize(
    ("scheme", "endpoint", "secret", "variables"),
    [
        ("s3", "AWS_ENDPOINT_URL", r"X-Amz-Signature=(\w+)", S3),
        ("gs", "GOOGLE_BASE_URL", r"Bearer (\S+)", {"GOOGLE_BEARER_TOKEN": TOKEN}),
        ("gs", "GOOGLE_BASE_URL", r"Bearer (\S+)", {"GOOGLE_APPLICATION_CREDENTIALS": "FILE"}),
        ("az", "AZURE_ENDPOINT", r"survey:(\S+)", {"AZURE_STORAGE_ACCOUNT_KEY": OTHER_KEY}),
        ("az", "AZURE_ENDPOINT", r"sig=([^ &]+)", {"AZURE_STORAGE_SAS_TOKEN": SAS}),
        ("az", "AZURE_ENDPOINT", r"Bearer (\S+)", {"AZURE_STORAGE_TOKEN": TOKEN}),
    ],
)
def test_server_that_repeats_the_request_gives_nothing_away(
    scheme: str,
    endpoint: str,
    secret: str,
    variables: dict[str, str],
    environment: Environment,
    tmp_path: Path,
) -> None:
    if "FILE" in variables.values():
        service_account(tmp_path / "account.json")
        variables = dict.fromkeys(variables, str(tmp_path / "account.json"))
    with cloud_servers.repeater() as server:
        environment(**variables, **{endpoint: server.url, "AZURE_STORAGE_ACCOUNT_NAME": "survey"})
        with pytest.raises(SwatheError) as caught:
            cut(f"{scheme}://frames/a.fit")
    (heard,) = server.heard
    sent = re.findall(secret, heard)
    # Of a long one a part would be too much.
    said = str(caught.value)
    assert "403 Forbidden, " in said and "frames/a.fit" in said
    assert sent and not [text for text in sent if text[:12] in said]
    assert "hush" not in said and SAS not in said and OTHER_KEY not in said


@pytest.mark.parametrize(
    "url", ["gs://frames", "gs:///a", "az://frames/", "az://a:b@c/d", "gs://a b/c"]
)
def test_url_without_bucket_or_key(url: str, environment: Environment) -> None:
    environment(AZURE_STORAGE_ACCOUNT_NAME="survey")
    with pytest.raises(SourceError, match=f"{url[:5]}"):
        swathe.open(url)
