"""`python -m asrd` is the command `asrd`."""

from asrd.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
