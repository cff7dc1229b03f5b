"""`python -m slp_transformer` is the command `slp-transformer`, and both start here."""

import sys


def main() -> int:
    """Do what the process's command line says; its exit code.

    The command line is imported here, so that Ctrl-C in the program's first moments, when its
    modules are still read, ends in a sentence too.
    """
    try:
        from slp_transformer.cli import main as command_line

        return command_line()
    except KeyboardInterrupt:
        print("slp-transformer: Stopped before it began.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
