"""What is mutated, and what must notice: the reference by the vectors, the judge by its tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["GROUPS", "ROOT", "Group"]

ROOT = Path(__file__).parents[3]
_KIT, _SPEC = Path("conformance/mmcache_conformance"), Path("spec/mmcache_spec")


@dataclass(frozen=True)
class Group:
    """Modules of one package, and the tests that alone may kill their mutants.

    Without tests, the killer is the vectors of the package (`kill.py`).
    """

    package: Path
    """The folder of the package, from the root of the repository."""
    modules: tuple[str, ...]
    tests: tuple[str, ...] = ()
    timeout: float = 20.0
    """Seconds after which a mutant counts as killed: some six times what the killer takes."""


def _tests(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/unit/{name}.py" for name in names)


GROUPS: dict[str, Group] = {
    # What the vectors call.
    "reference": Group(Path("impl/mmcache"), ("encoder_cache.py", "encoder_decoder.py")),
    "judge": Group(
        _KIT,
        ("verdicts/judge.py", "verdicts/run.py"),
        _tests(
            "conformance/test_judge",
            "conformance/test_runner",
            "conformance/test_expected_failures",
            "conformance/test_engine_cli",
            "conformance/test_engine_vectors",
        ),
        timeout=100,
    ),
    "blame": Group(
        _KIT,
        ("oracle/blame.py",),
        _tests("conformance/test_blame", "conformance/test_known_bad"),
        timeout=40,
    ),
    "logs": Group(
        _KIT,
        ("logs/check.py",),
        _tests(
            "conformance/test_check", "conformance/test_check_workers", "conformance/test_audit"
        ),
        timeout=50,
    ),
    "engines": Group(
        _KIT,
        ("engines/clauses.py", "engines/situations.py"),
        _tests("conformance/test_engine_vectors"),
        timeout=50,
    ),
    "bounded": Group(
        _SPEC,
        ("checks/bounded.py",),
        (
            *_tests("spec/test_disagreement", "spec/test_searched", "spec/test_warm_up"),
            "tests/properties/test_breadth_first.py",
        ),
        timeout=150,
    ),
    "interpreter": Group(
        _SPEC,
        ("evaluate/interpreter.py", "evaluate/meaning.py", "evaluate/narrowing.py"),
        _tests(
            "spec/test_interpreter",
            "spec/test_narrowing",
            "spec/test_compiled",
            "spec/test_vectors",
        ),
        timeout=80,
    ),
}
