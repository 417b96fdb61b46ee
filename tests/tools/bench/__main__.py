"""`make bench`: every benchmark, one after the other.

    python -m tests.tools.bench [--quick] [NAME]...

With `--quick` each does a little of everything, in seconds: to see that it still runs, as CI does.
The figures of a quick run mean nothing.
"""

from __future__ import annotations

import argparse
import os
from importlib import import_module
from pathlib import Path

NAMES = sorted(
    path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.tools.bench")
    options.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    options.add_argument("--quick", action="store_true", help="a little of everything")
    asked = options.parse_args()
    if unknown := sorted(set(asked.names) - set(NAMES)):
        options.error(f"no benchmark {', '.join(unknown)}: there are {', '.join(NAMES)}")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for name in asked.names or NAMES:
        print(f"\n=== {name}", flush=True)
        import_module(f"{__package__}.bench_{name}").main(asked.quick)


if __name__ == "__main__":
    main()
