"""`python -m slp_transformer` is the command `slp-transformer`."""

import sys

from slp_transformer.command_line import main

if __name__ == "__main__":
    sys.exit(main())
