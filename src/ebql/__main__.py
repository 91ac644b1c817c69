"""`python -m ebql` is the command `ebql`, for environments whose scripts are not on the path."""

import sys

from ebql.cli import main

if __name__ == "__main__":
    sys.argv[0] = "ebql"  # runs note the command that made them
    sys.exit(main())
