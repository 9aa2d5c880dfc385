"""Commands of `swathe`, one module per group. `swathe.cli.app` registers them."""
