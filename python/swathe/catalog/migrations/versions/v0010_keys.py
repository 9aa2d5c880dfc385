"""Measurements by server, if a store's options name it.

Measurements of two such stores under one URL cannot be separated: they are deleted.
"""

from urllib.parse import urlsplit

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

STORES = sa.table("stores", sa.column("url"), sa.column("options", sa.JSON))
LINKS = sa.table("links", sa.column("id"), sa.column("root"))
OUTCOMES = sa.table("outcomes", sa.column("root"))
PARTS = ("samples", "profiles", "probes")
PORTS = {"http": 80, "https": 443}


def upgrade() -> None:
    """Set the links of such stores to their present roots."""
    connection = op.get_bind()
    keys: dict[str, set[str]] = {}
    for url, options in connection.execute(sa.select(STORES.c.url, STORES.c.options)):
        keys.setdefault(url, set()).add(_key(url, options))
    taken = set(connection.scalars(sa.select(LINKS.c.root)))
    for url, found in keys.items():
        if found == {url} or url not in taken:
            continue
        if len(found) == 1 and not found & taken:
            taken |= found
            for table in (LINKS, OUTCOMES):
                new = sa.update(table).where(table.c.root == url).values(root=min(found))
                connection.execute(new)
            continue
        mixed = sa.select(LINKS.c.id).where(LINKS.c.root == url)
        for name in PARTS:
            part = sa.table(name, sa.column("link_id"))
            connection.execute(sa.delete(part).where(part.c.link_id.in_(mixed)))
        connection.execute(sa.delete(LINKS).where(LINKS.c.root == url))


def _key(url: str, options: dict[str, str]) -> str:
    scheme, _, rest = url.partition("://")
    if scheme in ("root", "roots"):
        server = options.get("door")
        path = "".join(rest.partition("/")[1:])
    elif scheme in ("s3", "gs", "az"):
        server = options.get("endpoint")
        if scheme == "az" and server is None and "account" in options:
            server = f"https://{options['account']}.blob.core.windows.net"
        path = f"/{rest}"
    else:
        server = None
    if server is None:
        return url
    parts = urlsplit(server)
    port = parts.port or PORTS.get(parts.scheme, 0)
    host = parts.netloc.removesuffix(f":{parts.port}").lower()
    return f"{scheme}://{host}:{port}{parts.path.rstrip('/')}{path}"
