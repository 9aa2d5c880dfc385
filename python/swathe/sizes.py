"""Sizes in bytes, and how they are told."""

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def size_text(size_bytes: float, form: str = ".4g") -> str:
    """Give a size as people say it, such as `1.5 MiB`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:{form}} {name}"
    return f"{size_bytes:.0f} B"
