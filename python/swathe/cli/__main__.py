"""Run the command `swathe` as `python -m swathe.cli`."""

from swathe.cli.app import main

if __name__ == "__main__":
    main()
