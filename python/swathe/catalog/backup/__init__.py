"""Backups of a catalogue, made while it is used, and their return."""

from swathe.catalog.backup.archive import BackupRecord, read_backup
from swathe.catalog.backup.backup import backup, restore

__all__ = ["BackupRecord", "backup", "read_backup", "restore"]
