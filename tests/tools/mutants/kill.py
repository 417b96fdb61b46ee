"""The killer: vectors, run on whatever `mmcache` is found first. Exit code 0 or 1.

The vectors are those of the package, or those of the directory that is given.
"""

import sys
from pathlib import Path

from mmcache_conformance.open import open_target
from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.verdicts.run import exit_code, run_target

vectors = load_suite(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
sys.exit(exit_code([run_target(open_target("reference"), vectors, fail_fast=True, stretch=False)]))
