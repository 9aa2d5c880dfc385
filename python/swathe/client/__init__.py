"""Client of a remote portal."""
