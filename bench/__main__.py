"""`python -m bench [--quick] [NAME ...]`: runs benchmarks and prints one JSON document of their figures."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path


def benchmarks() -> list[str]:
    """Lists the benchmarks of this folder by name."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def main() -> int:
    """Runs the named benchmarks, or all; 2 for a name that is none, 1 when there is nothing to run."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which ones (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute at most")
    parser.add_argument("--list", action="store_true", help="only names the benchmarks")
    wanted = parser.parse_args()
    known = benchmarks()
    if wanted.list:
        print("\n".join(known))
        return 0
    if unknown := sorted(set(wanted.names) - set(known)):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(known) or 'none'}")
    if not known:
        print("error: bench/ holds no benchmark yet", file=sys.stderr)
        return 1
    names = wanted.names or known
    figures = {name: importlib.import_module(f"bench.{name}").run(wanted.quick) for name in names}
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
