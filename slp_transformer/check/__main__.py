"""Print every check with the mistakes that it knows by name: `python -m slp_transformer.check`."""

from slp_transformer.check import CHECKS


def main() -> None:
    """Print the table."""
    for check in CHECKS.values():
        print(f"\n{check.signature_text}: {check.source}")
        for name, sentence in check.mistakes.items():
            print(f"  {name}: {sentence}")
    known = sum(len(check.mistakes) for check in CHECKS.values())
    print(f"\n{len(CHECKS)} checks know {known} mistakes.")


if __name__ == "__main__":
    main()
