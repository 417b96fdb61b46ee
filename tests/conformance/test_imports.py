"""What running vectors may import: no solver, no specification, no implementation of ours."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mmcache_conformance

PACKAGE = Path(str(mmcache_conformance.__file__)).parent
FORMATS = {"mmcache_spec.vectors.format", "mmcache_spec.vectors.system_format"}
BEYOND_VECTORS = {
    "blame": set(),
    "exhaust": set(),
    "exhaust_world": set(),
    "log_check": set(),
    "log_model": set(),
    "record": {"vllm"},
    "vllm_scheduler": {"vllm", "torch"},
}
"""No vector is run through these: they may take definitions of the specification, never its proofs
or its solver; some meet a real vLLM, and import it when they do."""
FILES = sorted(PACKAGE.glob("*.py"))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_the_format_is_taken_from_the_specification(path: Path) -> None:
    for name in _imported(path):
        top = name.partition(".")[0]
        beyond = BEYOND_VECTORS.get(path.stem)
        assert top not in {"z3", "mmcache", "vllm", "torch"} - (beyond or set())
        assert top != "mmcache_spec" or name in FORMATS or beyond is not None


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
    assert {m for m in loaded if m.startswith("mmcache_spec")} == {
        "mmcache_spec",
        "mmcache_spec.vectors",
        "mmcache_spec.vectors.format",
    }


def test_json_output_loads_no_table() -> None:
    assert not {"rich", "rich.table"} & _modules_after("run", "--json")
