from __future__ import annotations

import sys

from benchmarks.harness import discover, run

if __name__ == "__main__":
    discover()
    sys.exit(run(sys.argv[1:]))
