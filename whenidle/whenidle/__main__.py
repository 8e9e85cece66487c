"""`python -m whenidle` is the command `whenidle`."""

import sys

from whenidle.cli import main

if __name__ == "__main__":
    sys.exit(main())
