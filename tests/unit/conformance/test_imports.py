"""What a run loads: no solver, no specification, nothing that it does not use."""

from __future__ import annotations

import subprocess
import sys


def _modules_after(*arguments: str) -> set[str]:
    code = (
        "import sys\n"
        "from mmcache_conformance.cli import cli\n"
        f"cli({list(arguments)!r}, standalone_mode=False)\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_a_run_on_the_reference_loads_no_solver_and_nothing_that_it_does_not_use() -> None:
    loaded = _modules_after("run")
    assert "mmcache" in loaded
    assert "rich.table" in loaded
    unused = {"z3", "cvc5", "requests", "pypi_simple", "remotezip", "platformdirs", "pytest"}
    assert not loaded & unused
    assert not {m for m in loaded if m.startswith("mmcache_spec")}


def test_json_output_loads_no_table() -> None:
    assert not {"rich", "rich.table"} & _modules_after("run", "--plain", "--json")
