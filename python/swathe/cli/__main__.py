"""`python -m swathe.cli`: the command `swathe`."""

from swathe.cli.app import main

if __name__ == "__main__":
    main()
