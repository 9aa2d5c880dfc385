"""Migrations of the database: one module per step in `versions`.

A step is complete in itself, independent of today's tables, and never changed once released. Its
revision is appended to `swathe.catalog.revisions.REVISIONS`.
"""
