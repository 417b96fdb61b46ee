"""A module has one job, and about 400 lines at most; those that have more say why."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = [ROOT / root for root in ("spec", "impl", "conformance")]
MOST = 400
LONGER = {
    "mmcache/engine/scheduling_pass.py": "one pass, in the order in which it decides",
    "mmcache_conformance/differ/search.py": "one search: its sequences, what differs, the least",
    "mmcache_conformance/exhaust/search.py": "one search, with what it keeps of a state",
    "mmcache_conformance/oracle/decisions.py": "one question: which decisions explain the failures",
    "mmcache_conformance/targets/command.py": "one conversation, with its faults",
    "mmcache_conformance/targets/python.py": "what a class is asked, and how it is seen",
    "mmcache_spec/checks/bounded.py": "the search for the least counterexample, step by step",
    "mmcache_spec/evaluate/compiled.py": "one translation, a case for each kind of term",
    "mmcache_spec/evaluate/meaning.py": "one translation, a case for each kind of term",
    "mmcache_spec/evaluate/uniform/writing.py": "one translation, a case for each kind of term",
    "mmcache_spec/generate/arenas.py": "a table: the worlds of each model",
    "mmcache_spec/generate/long.py": "one vector's walk: phases, amounts, what is shown",
    "mmcache_spec/generate/pairs.py": "one suite: what it is made of, and how it is chosen",
    "mmcache_spec/kernel/schemas.py": "the schemas of lemmas, and what may stand in them",
    "mmcache_spec/kernel/terms.py": "the language: its terms, and the ways through them",
    "mmcache_spec/model/engine.py": "the protocol of the engine, read from top to bottom",
    "mmcache_spec/model/engine_state.py": "the words of the engine: a table with formulas",
    "mmcache_spec/model/goals.py": "a table: the situations of each model",
    "mmcache_spec/model/ledger.py": "the protocol of the ledger, read from top to bottom",
}
"""Modules with more lines, by their place under a source root, and why they are not cut."""


def too_long(folder: Path) -> set[str]:
    """The modules of more lines than `MOST` in a source root."""
    return {
        str(file.relative_to(folder))
        for file in folder.rglob("*.py")
        if len(file.read_text().splitlines()) > MOST
    }


def test_a_longer_module_has_a_reason() -> None:
    found = set().union(*(too_long(root) for root in SOURCES))
    assert found <= set(LONGER), "split it by its jobs, or say why it is one"
    here = {name for root in SOURCES for name in LONGER if (root / name).exists()}
    assert here == set(LONGER), "it is gone"


def test_a_long_module_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text("x = 1\n" * MOST)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "long.py").write_text("x = 1\n" * (MOST + 1))
    assert too_long(tmp_path) == {"room/long.py"}
