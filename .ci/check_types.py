"""Run mypy, and fail where a package has more errors than .ci/type_errors.json says.

python .ci/check_types.py           # compare
python .ci/check_types.py --write   # keep the numbers of today, which should have fallen
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".ci" / "type_errors.json"


def package(line: str) -> str:
    """The package that a line of mypy's speaks of; modules at the top count as one."""
    parts = Path(line.partition(":")[0]).parts
    return parts[1] if len(parts) > 2 else "slp_transformer"


def main() -> int:
    """Count, then compare or write."""
    command = [sys.executable, "-m", "mypy", "--no-pretty", "--no-error-summary"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8")
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    if done.returncode != bool(errors):  # mypy itself has failed
        print(done.stdout)
        return 2
    found = Counter(map(package, errors))
    if sys.argv[1:] == ["--write"]:
        KEPT.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", encoding="utf-8")
        return 0
    allowed = json.loads(KEPT.read_text(encoding="utf-8"))
    worse = [name for name in found if found[name] > allowed.get(name, 0)]
    for name in worse:
        print(*(line for line in errors if package(line) == name), sep="\n")
        print(f"{name} has {found[name]} type errors; {allowed.get(name, 0)} are allowed.")
    if not worse and sum(found.values()) < sum(allowed.values()):
        print("Fewer type errors than before: keep that with python .ci/check_types.py --write")
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
