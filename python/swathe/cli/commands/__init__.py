"""Commands of `swathe`, one module for each group; `swathe.cli` puts them together."""
