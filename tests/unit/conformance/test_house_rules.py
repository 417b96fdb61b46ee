"""Rules of the house that can be checked: of Structs, of names, of tests of clauses."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import msgspec

import mmcache
import mmcache_conformance
import mmcache_vectors
from mmcache_conformance.differ.pairs import PairDifferReport
from mmcache_conformance.differ.report import DifferReport
from mmcache_conformance.engines.generate import AbstractPath, Shape
from mmcache_conformance.engines.random import RandomRun
from mmcache_conformance.exhaust.report import ExhaustReport
from mmcache_conformance.logs.format import Header, LogEvent
from mmcache_conformance.logs.verdict import CheckReport
from mmcache_conformance.matrix.run import Matrix
from mmcache_conformance.suites import load
from mmcache_conformance.suites.listing import Listing
from mmcache_conformance.targets import command, isolated, wire
from mmcache_conformance.verdicts.expected import ExpectedFailures
from mmcache_conformance.verdicts.model import RunReport
from mmcache_conformance.verdicts.smoke import SmokeReport
from mmcache_spec.model.variants import VARIANTS
from mmcache_vectors.clauses import CLAUSES
from mmcache_vectors.engine import ENGINE_CLAUSES
from tests.known_bad.managers import (
    ENCODER_DECODERS,
    LEDGERS,
    WrongEncoderDecoder,
    WrongLedger,
)

DOCUMENTS = (
    *(RunReport, RandomRun, CheckReport, ExhaustReport, Matrix, ExpectedFailures, Header, LogEvent),
    *(wire.Message, wire.Started, wire.Ran, wire.Passed, wire.PairTold, wire.Errored),
    *(isolated.Begin, isolated.Loaded, isolated.Look, isolated.Begun, isolated.Refused),
    *(importlib.import_module("mmcache_conformance.engines.generate")._Sketches, AbstractPath),
    *(
        Shape,
        load._Header,
        load._Manifest,
        Listing,
        SmokeReport,
        DifferReport,
        PairDifferReport,
        command._RawRan,
    ),
)
"""All that is read from or written to a file, a pipe or a terminal as JSON or TOML."""


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """Every module of a package."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def structs() -> Iterator[type]:
    """Every Struct that the package defines."""
    for module in modules(mmcache_conformance):
        for value in vars(module).values():
            ours = isinstance(value, type) and value.__module__ == module.__name__
            if ours and issubclass(value, msgspec.Struct):
                yield value


def parts(info: object) -> Iterator[type]:
    """The Structs of which a type is made."""
    seen: set[int] = set()
    waiting = [info]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (list, tuple)):
            waiting += one
        elif isinstance(one, (msgspec.inspect.Type, msgspec.inspect.Field)) and id(one) not in seen:
            seen.add(id(one))
            if isinstance(one, msgspec.inspect.StructType):
                yield one.cls
            waiting += [getattr(one, name) for name in one.__struct_fields__]


def test_a_struct_is_part_of_a_document() -> None:
    written = set(parts(msgspec.inspect.multi_type_info(DOCUMENTS)))
    bases = {base for cls in written for base in cls.__mro__}
    stray = {cls for cls in structs() if cls not in bases}
    assert not stray, "a frozen dataclass will do"
    assert RunReport in written
    assert len(written) > 30


TWICE = {
    "EncoderCacheMiss": "the worker of the reference raises it, and the stand-in of one of vLLM",
    "Request": "the reference takes any object with these attributes, a vector writes one down",
}
"""Public names with two meanings, and why."""


def test_a_public_class_has_a_name_of_its_own() -> None:
    packages = (mmcache, mmcache_vectors, mmcache_conformance)
    found: dict[str, set[type]] = {}
    for module in (m for package in packages for m in modules(package)):
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if isinstance(value, type):
                found.setdefault(value.__name__, set()).add(value)
    assert {name for name, classes in found.items() if len(classes) > 1} == set(TWICE)


REFERENCE = Path(__file__).parents[1] / "impl"
OTHERWISE = {
    "test_api_shape.py": "names and parameters, as vLLM has them",
    "test_cost.py": "what a call costs",
    "test_differences.py": "the page that tells where vLLM differs",
    "test_aborting_who_is_not_here_changes_nothing": "an error of the engine's caller",
    "test_an_id_that_is_here_already": "an error of the engine's caller",
    "test_blocks_are_given_whole_or_not_at_all": "blocks, which the clauses take as given",
    "test_blocks_of_a_cancelled_pass_are_never_found": "blocks, which the clauses take as given",
    "test_a_prefix_is_found_again_and_one_token_is_left_to_compute": "blocks",
    "test_fcfs_preempts_the_last_priority_the_least_urgent": "an order that the clauses leave free",
    "test_checks_survive_optimisation": "that an error is not an assert",
    "test_errors_cross_a_process_boundary": "that an error can be pickled",
    "test_one_base_that_is_a_value_error": "what the errors are",
    "test_what_the_request_raises_passes_through": "an error of the caller's object",
}
"""Tests of the reference that defend no clause: modules and functions, and what they are about."""


def names_of_tests(source: str) -> Iterator[tuple[str, str]]:
    """Each test of a module, with the text that may name its clauses: its class and docstring."""
    module = ast.parse(source)
    for node in module.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        for one in inside:
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test_"):
                about = node.name if isinstance(node, ast.ClassDef) else ""
                yield one.name, f"{about} {ast.get_docstring(one) or ''}"


def ids_in(text: str) -> set[str]:
    """What looks like the id of a clause, also where a class is called after it."""
    return set(re.findall(r"(?:\b|\bTest)([LESPHCK]\d+)(?!\d)", text))


def test_a_test_of_the_reference_names_the_clause_that_it_defends() -> None:
    silent, named, unknown = set(), set(), set()
    for file in REFERENCE.glob("test_*.py"):
        for name, text in names_of_tests(file.read_text()):
            found = ids_in(text)
            unknown |= found - set(CLAUSES)
            named |= found
            if not found:
                silent.add(file.name if file.name in OTHERWISE else name)
    assert not unknown, "no clause has this id"
    assert silent == set(OTHERWISE)
    defects: tuple[type[WrongLedger] | type[WrongEncoderDecoder], ...]
    defects = (*LEDGERS, *ENCODER_DECODERS)
    wrong = {clause for cls in defects for clause in cls.clauses}
    of_managers = {clause for clause in CLAUSES if clause[0] in "LE"}
    assert of_managers <= named | wrong, "no test defends it"


NETS = (Path(__file__).parent, Path(__file__).parents[2] / "properties")
ABOUT_OTHERS = {
    "test_breadth_first.py": "how far a search goes, whatever is searched for",
    "test_cli.py": "what the command prints and returns, whatever is wrong",
    "test_decisions_that_exclude_each_other": "which decisions go together",
    "test_expected_failures.py": "what is done with a failure that is known",
    "test_fail_fast": "that a run ends at the first failure",
    "test_many_workers_find_what_one_finds": "that work can be shared",
    "test_matrix.py": "in which releases a failure came and went",
    "test_public_face.py": "what the package exports",
    "test_reports.py": "how a failure is shown",
    "test_several_processes_find_the_same": "that work can be shared",
    "test_several_scopes_in_several_processes": "that work can be shared",
    "test_the_same_seed_plays_the_same": "that a seed is enough to come to the same",
}
"""Modules and tests that use what is wrong to show something else than that it is found."""


def wrong_ones() -> dict[str, set[str]]:
    """By its name, the clauses that a known-bad manager, or a wrong decision, breaks."""
    managers: tuple[type[WrongLedger] | type[WrongEncoderDecoder], ...]
    managers = (*LEDGERS, *ENCODER_DECODERS)
    wrong = {cls.__name__: set(cls.clauses) for cls in managers if cls.clauses}
    expected = {name: v.expected for name, v in VARIANTS.items()}
    return wrong | {
        name: {*e.breaks, *([e.target] if e.target else [])}
        for name, e in expected.items()
        if e is not None
    }


def whole_tests(source: str) -> Iterator[tuple[str, str]]:
    """Each test of a module, with its class, its parameters, and the constants that it names."""
    module = ast.parse(source)
    constants = {
        target.id: ast.unparse(node.value)
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in module.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        for one in inside:
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test_"):
                about = node.name if isinstance(node, ast.ClassDef) else ""
                text = ast.unparse(one)
                named = [constants[w] for w in re.findall(r"\w+", text) if w in constants]
                yield one.name, " ".join((about, text, *named))


def defends_in_silence(text: str, wrong: dict[str, set[str]]) -> bool:
    """Whether a test takes something wrong by its name, and names no clause that it breaks."""
    taken = set(re.findall(r"\w+", text)) & wrong.keys()
    if not taken or re.search(r"\.clauses\b", text):
        return False
    return not any(wrong[name] & ids_in(text) for name in taken)


def test_a_test_that_something_wrong_is_found_names_the_clause() -> None:
    wrong = wrong_ones()
    silent = {
        file.name if file.name in ABOUT_OTHERS else name
        for room in NETS
        for file in room.glob("test_*.py")
        for name, text in whole_tests(file.read_text())
        if defends_in_silence(text, wrong)
    }
    assert silent == set(ABOUT_OTHERS), "name the clause, best in the docstring"


def test_a_silent_test_is_noticed() -> None:
    source = (
        'BAD = "managers:UnfilteredReport"\n'
        "def test_a(): run(BAD)\n"
        'def test_b():\n  """L1: it is reported."""\n  run(BAD)\n'
        'def test_c():\n  """L2."""\n  run(BAD)\n'
        "def test_d(): run(RIGHT)\n"
        "def test_e(): assert found in UnfilteredReport.clauses\n"
    )
    wrong = wrong_ones()
    assert [n for n, text in whole_tests(source) if defends_in_silence(text, wrong)] == [
        "test_a",
        "test_c",
    ]


def test_every_clause_of_a_pass_is_seen_to_break() -> None:
    """By the test of the judge of engines."""
    source = (Path(__file__).parent / "test_engine_vectors.py").read_text()
    judging = source[source.index("def _record(") : source.index("class Plays")]
    assert set(ENGINE_CLAUSES) <= set(re.findall(r"\b[LS]\d+\b", judging))


def test_a_test_without_a_clause_is_noticed() -> None:
    source = 'class TestL1Report:\n  def test_a(self): ...\ndef test_b():\n  """L2, S1: x."""\n'
    found = {name: ids_in(text) for name, text in names_of_tests(source + "def test_c(): ...\n")}
    assert found == {"test_a": {"L1"}, "test_b": {"L2", "S1"}, "test_c": set()}
