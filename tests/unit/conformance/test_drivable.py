"""Another API is no broken clause, and what was not tested is said."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mmcache import EncoderCacheManager, EncoderDecoderCacheManager
from mmcache_conformance.cli import cli
from mmcache_conformance.errors import TargetError
from mmcache_conformance.open import open_target
from mmcache_conformance.oracle.decisions import explained
from mmcache_conformance.targets.api import is_api_error
from mmcache_conformance.targets.protocol import CALLS
from mmcache_conformance.targets.vllm.source import find_source, load_classes
from mmcache_conformance.verdicts.model import TargetReport
from mmcache_conformance.verdicts.run import run_target
from tests.known_bad.managers import UnfilteredReport
from tests.known_bad.other_apis import OTHER_APIS
from tests.support.drivers import SHORT, short_vectors
from tests.support.plain_managers import Manager
from tests.support.quick import only_quick

MANAGERS = Path(__file__).parents[2] / "support" / "plain_managers.py"
FILE = (
    MANAGERS.read_text()
    .replace("class Manager:", "class EncoderCacheManager:")
    .replace("(Manager)", "(EncoderCacheManager)")
)
FORK = (
    FILE
    + """

class ScoreEncoderCacheManager(EncoderCacheManager):
    def get_freed_mm_hashes(self):
        report, self.gone = self.gone, []
        return report
"""
)


def invoke(command: str, *words: object) -> Result:
    """The vectors are played as they are: what larger worlds find is not asked here."""
    given = [command, "--plain", *(["-k", SHORT] if command == "run" else []), *map(str, words)]
    return CliRunner().invoke(cli, given, prog_name="mmcache-conformance")


# --- another API -------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", OTHER_APIS, ids=lambda c: c.__name__)
def test_another_api_is_named_and_breaks_no_clause(cls: type[Any]) -> None:
    target = f"{cls.__module__}:{cls.__name__}"
    with pytest.raises(TargetError) as caught:
        open_target(target).start()
    assert cls.says in str(caught.value)
    assert str(caught.value).startswith("Cannot be driven: ")
    done = invoke("run", "-q", target)
    assert done.exit_code == 3
    assert "failed" not in done.output.partition("could not be started")[0]


def test_the_other_kind_of_manager_is_tested_all_the_same() -> None:
    wrong = "tests.known_bad.other_apis:EarlierAdmission"
    done = invoke("run", f"tests.support.plain_managers:Manager,{wrong}")
    assert done.exit_code == 3
    assert "encoder_decoder: Cannot be driven: `can_allocate` takes 2 arguments" in done.output
    assert "FAIL" not in done.output
    report = run_target(open_target(f",{wrong}"), (), stretch=False)
    assert report.implementation is None


def test_a_call_that_is_declared_and_not_there_is_skipped() -> None:
    class Partial(Manager):
        def reset(self) -> None:
            if hasattr(self, "sizes"):
                raise NotImplementedError
            super().reset()

    found = started(Partial)
    assert "reset" not in found.capabilities["encoder_cache"]
    assert "free" in found.capabilities["encoder_cache"]


def started(cls: type) -> Any:
    from mmcache_conformance.targets.python import ManagerClasses, PythonTarget

    return PythonTarget("x", lambda: ManagerClasses("x", cls, None)).start()


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        ("Cannot be driven: whatever", True),
        ("TypeError: M.free() takes 1 positional argument but 2 were given (m.py, line 3)", True),
        ("TypeError: M.reset() missing 1 required positional argument: 'hard'", True),
        ("TypeError: manager.canAllocate is not a function", True),
        ("NotImplementedError (m.py, line 7)", True),
        ("TypeError: unsupported operand type(s) for +: 'int' and 'str'", False),
        ("TypeError: Cannot read properties of undefined (reading 'size')", False),
        ("ValueError: no room", False),
        ("AttributeError: 'Pool' object has no attribute 'slots'", False),
    ],
)
def test_a_failed_call_says_by_its_text_whether_it_could_be_made(error: str, is_one: bool) -> None:
    assert is_api_error(error) is is_one


def test_a_defect_that_raises_is_still_a_failure() -> None:
    done = invoke("run", "tests.known_bad.misbehaving:Raises", "-q")
    assert done.exit_code == 1
    assert " failed" in done.output


# --- what is shown, and how ---------------------------------------------------------------------

SHAPES: dict[str, tuple[str, Callable[[Any], object]]] = {
    "counts of references": ("cached", lambda v: {h: len(r) for h, r in v.items()}),
    "pairs as references": ("cached", lambda v: {h: [(r, 0) for r in rs] for h, rs in v.items()}),
    "one text for all references": ("cached", lambda v: {h: ",".join(r) for h, r in v.items()}),
    "hashes alone": ("cached", set),
    "pairs of a hash and its references": ("cached", lambda v: list(v.items())),
    "hashes as bytes": ("cached", lambda v: {h.encode(): r for h, r in v.items()}),
    "pairs of an age and a hash": ("freeable", lambda v: list(enumerate(v))),
    "ages": ("freeable", lambda v: list(range(len(v)))),
    "no order": ("freeable", frozenset),
    "nothing where there is something": ("freeable", lambda v: None if v else []),
    "a fraction": ("num_free_slots", Fraction),
    "a float once it is not whole": ("num_free_slots", lambda v: v if v == 2 else float(v)),
    "positions as texts": ("get_cached_input_ids", lambda v: [str(k) for k in v]),
    "a number of positions": ("get_cached_input_ids", len),
}
"""State that is there and of another make, by where it is."""


def shown_otherwise(base: type, where: str, shape: Callable[[Any], object]) -> type:
    """The manager, which shows its state in another form."""

    class Shown:
        def __init__(self, cache_size: int) -> None:
            self._inner = base(cache_size)

        def __getattr__(self, name: str) -> object:
            found = getattr(self._inner, name)
            if name != where:
                return found
            return (lambda request: shape(found(request))) if callable(found) else shape(found)

    return Shown


def report_of(cls: type) -> TargetReport:
    from mmcache_conformance.targets.python import ManagerClasses, PythonTarget

    target = PythonTarget("x", lambda: ManagerClasses("x", cls, None))
    return explained(run_target(target, short_vectors()), short_vectors())


@pytest.mark.parametrize("name", SHAPES)
def test_state_of_another_make_is_not_compared_and_said_aloud(name: str) -> None:
    """L1: and the answers are judged all the same."""
    where, shape = SHAPES[name]
    report = report_of(shown_otherwise(EncoderCacheManager, where, shape))
    assert report.implementation is not None
    assert {v.outcome for v in report.verdicts} == {"pass", "skip"}
    (said,) = report.implementation.uncompared
    assert where in said
    wrong = report_of(shown_otherwise(UnfilteredReport, where, shape))
    assert "L1" in {c for v in wrong.verdicts for c in v.broke or ()}


def test_what_shows_late_that_it_cannot_be_compared_breaks_no_clause() -> None:
    """Only where two requests share a hash, to which the first calls do not come."""

    def late(cached: Any) -> object:
        return {h: r if len(r) < 2 else len(r) for h, r in cached.items()}

    report = report_of(shown_otherwise(EncoderCacheManager, "cached", late))
    assert {v.outcome for v in report.verdicts} == {"pass", "skip", "error"}
    errors = [str(v.reason) for v in report.verdicts if v.outcome == "error"]
    assert all(
        "what cached has of a hash is of type int, which cannot be compared" in e for e in errors
    )


def test_state_that_breaks_down_at_work_is_a_failure() -> None:
    """What cannot be read after some calls is the manager's own defect."""

    def broken(freeable: Any) -> object:
        if list(freeable):
            raise RuntimeError("the list is torn")
        return []

    report = report_of(shown_otherwise(EncoderCacheManager, "freeable", broken))
    assert report.implementation is not None
    assert report.implementation.uncompared == ()
    assert "fail" in {v.outcome for v in report.verdicts}


class PassesOn:
    """All calls go to another object, which no class declares."""

    def __init__(self, cache_size: int) -> None:
        self._inner = EncoderCacheManager(cache_size)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


class BoundWhenMade:
    """The calls are attributes of the instance."""

    def __init__(self, cache_size: int) -> None:
        self._inner = EncoderCacheManager(cache_size)
        for name in (*CALLS, "get_cached_input_ids"):
            setattr(self, name, getattr(self._inner, name))


@pytest.mark.parametrize("cls", [PassesOn, BoundWhenMade])
def test_the_calls_are_those_of_the_instance(cls: type) -> None:
    report = report_of(cls)
    assert report.reason is None
    assert {v.outcome for v in report.verdicts} == {"pass", "skip"}


def test_the_size_is_given_by_its_name_and_a_configuration_would_not_help() -> None:
    class Named(EncoderCacheManager):
        def __init__(self, size: int) -> None:
            super().__init__(size)

    reason = str(report_of(Named).reason)
    assert "the size is given by the name `cache_size`" in reason
    assert "--vllm-config" not in reason


# --- which classes, and how they are made ------------------------------------------------------


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    path = tmp_path / "encoder_cache_manager.py"
    path.write_text(FORK)
    return path


def test_what_was_not_tested_is_named(fork: Path) -> None:
    done = invoke("run", "-q", f"vllm:{fork}")
    assert done.exit_code == 0
    assert f"not tested: vllm:{fork}:Attaches, vllm:{fork}:" in done.output
    assert f"vllm:{fork}:ScoreEncoderCacheManager" in done.output
    assert "ScoreEncoderCacheManager" not in invoke("run", "-q", "reference").output


def test_another_class_of_the_file_can_be_named(fork: Path) -> None:
    """L1 is broken by the one, and kept by the other."""
    done = invoke("run", "-q", f"vllm:{fork}:ScoreEncoderCacheManager")
    assert done.exit_code == 1
    assert "decisions: unfiltered_report" in done.output
    assert f"vllm:{fork}:EncoderCacheManager" in done.output


@pytest.mark.parametrize(
    ("named", "kinds"),
    [
        ("EncoderDecoder", {"encoder_cache"}),
        ("EncoderCacheManager,EncoderDecoder", {"encoder_cache", "encoder_decoder"}),
    ],
)
def test_two_classes_can_be_named(fork: Path, named: str, kinds: set[str]) -> None:
    assert set(open_target(f"vllm:{fork}:{named}").start().capabilities) == kinds


def test_a_class_that_is_not_there(fork: Path) -> None:
    done = invoke("run", f"vllm:{fork}:Absent")
    assert done.exit_code == 3
    assert "has no class Absent; it has EncoderCacheManager, Attaches," in done.output


def test_a_file_of_other_names_says_which(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text(FILE.replace("EncoderCacheManager", "PooledManager"))
    done = invoke("run", f"vllm:{path}")
    assert done.exit_code == 3
    assert f"name one, as in vllm:{path}:PooledManager" in done.output
    assert invoke("run", "-q", f"vllm:{path}:PooledManager").exit_code == 0


class Configured(Manager):
    """It can be made only as vLLM makes it."""

    def __init__(self, cache_size: int, slots: int) -> None:
        self.slots = slots
        super().__init__(cache_size)

    @classmethod
    def create_manager(cls, cache_size: int, vllm_config: Any) -> Configured:
        return cls(cache_size, vllm_config.slots)


class TakesTheConfiguration(Manager):
    def __init__(self, cache_size: int, vllm_config: Any) -> None:
        self.slots = vllm_config.slots
        super().__init__(cache_size)


def configuration() -> object:
    return SimpleNamespace(slots=3)


an_object = configuration()


@pytest.mark.parametrize("cls", [Configured, TakesTheConfiguration])
@pytest.mark.parametrize("name", ["configuration", "an_object"])
def test_a_configuration_can_be_given(
    cls: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = f"{__name__}:{cls.__name__}"
    monkeypatch.setitem(
        sys.modules, __name__, sys.modules.get(__name__, sys.modules[cls.__module__])
    )
    done = invoke("run", "-q", "--in-process", target)
    assert done.exit_code == 3
    assert "give it a configuration: --vllm-config module:NAME" in done.output
    given = ("--vllm-config", f"{__name__}:{name}")
    assert invoke("run", "-q", "--in-process", target, *given).exit_code == 0
    monkeypatch.setenv("MMCACHE_VLLM_CONFIG", f"{__name__}:{name}")
    assert open_target(target, in_process=True).start().capabilities
    assert invoke("run", target, "--vllm-config", "nothing").exit_code == 2
    assert invoke("run", target, "--vllm-config", f"{__name__}:absent").exit_code == 3  # in a child


# --- forks under other names -------------------------------------------------------------------


def test_a_file_with_dataclasses_is_loaded_with_and_without_the_future(tmp_path: Path) -> None:
    data = "from dataclasses import dataclass\n\n@dataclass\nclass Entry:\n    size: 'int' = 0\n\n"
    for first in ("", "from __future__ import annotations\n"):
        path = tmp_path / "m.py"
        path.write_text(first + data + FILE.replace("from __future__ import annotations\n", ""))
        before = dict(sys.modules)
        assert load_classes(find_source(str(path))).encoder_cache is not None
        assert sys.modules == before


@pytest.mark.parametrize("package", ["otherengine", "a_fork"])
def test_a_wheel_and_a_checkout_of_a_fork(tmp_path: Path, package: str) -> None:
    inside = f"{package}/v1/core/encoder_cache_manager.py"
    wheel = tmp_path / f"{package}-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(inside, FORK)
    checkout = tmp_path / "checkout"
    (checkout / inside).parent.mkdir(parents=True)
    (checkout / inside).write_text(FORK)
    for where in (wheel, checkout):
        source = find_source(str(where))
        assert (source.package, source.content.decode()) == (package, FORK)
        assert source.name.startswith(package)


def test_of_two_forks_in_one_folder_one_must_be_named(tmp_path: Path) -> None:
    for package in ("one", "other"):
        file = tmp_path / package / "v1/core/encoder_cache_manager.py"
        file.parent.mkdir(parents=True)
        file.write_text(FORK)
    with pytest.raises(TargetError, match=r"several managers in .*, name one: .*one.*other"):
        find_source(str(tmp_path))


def test_an_installed_fork_is_not_mixed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "site" / "afork" / "v1"
    installed.mkdir(parents=True)
    for file in (installed.parent / "__init__.py", installed / "__init__.py"):
        file.write_text("raise RuntimeError('the installed one was imported')")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    path = tmp_path / "manager.py"
    past = FORK.replace("from __future__ import annotations\n", "")
    path.write_text(f"from afork.v1.request import Request\nimport afork.envs\n{past}")
    assert load_classes(find_source(str(path))).encoder_cache is not None
    inside = tmp_path / "afork" / "v1" / "core" / "encoder_cache_manager.py"
    inside.parent.mkdir(parents=True)
    inside.write_text(f"from afork.logger import init_logger\nlogger = init_logger('x')\n{past}")
    assert load_classes(find_source(str(tmp_path / "afork"))).encoder_cache is not None


# --- what is demanded of a target --------------------------------------------------------------


DEMANDS: list[tuple[list[str], int, str]] = [
    (["--require", "reset"], 0, ""),
    (["--require", "encoder_decoder"], 3, "it lacks encoder_decoder, which --require asks"),
    (["--require", "allocate_again", "--require", "x-mine"], 3, "it lacks allocate_again, x-m"),
    (["--require", "can_alocate"], 2, "no capability (did you mean can_allocate?)"),
    (["--max-skipped", "1000"], 0, ""),
    (["--max-skipped", "3"], 3, "skipped, more than --max-skipped 3"),
    (["--max-skipped", "-1"], 2, "-1 is not in the range"),
]


def in_turn(words: list[str], code: int, says: str, quiet: list[str]) -> bool:
    """Each demand in one of the two ways, and each way several times."""
    return bool(quiet) == bool(DEMANDS.index((words, code, says)) % 2)


@pytest.mark.parametrize(
    ("words", "code", "says", "quiet"),
    only_quick([(*demand, q) for demand in DEMANDS for q in ([], ["-q"])], in_turn),
)
def test_what_is_demanded(words: list[str], code: int, says: str, quiet: list[str]) -> None:
    done = invoke("run", "--in-process", "tests.support.plain_managers:Manager", *words, *quiet)
    assert done.exit_code == code
    assert says in done.output


def test_what_is_demanded_of_two_kinds_is_asked_of_each_that_can_have_it() -> None:
    assert invoke("run", "-q", "--require", "freeable", "--require", "reset").exit_code == 0

    class NoReset(EncoderDecoderCacheManager):
        reset = None  # type: ignore[assignment]

    both = f"mmcache:EncoderCacheManager,{__name__}:NoReset"
    sys.modules[NoReset.__module__].NoReset = NoReset  # type: ignore[attr-defined]
    done = invoke("run", "-q", "--require", "reset", both)
    assert done.exit_code == 3


def test_a_capability_that_nobody_knows_is_an_error() -> None:
    class Misspelt(EncoderCacheManager):
        conformance_capabilities = ("alocate_again",)

    with pytest.raises(TargetError, match=r"'alocate_again', which is none \(did you mean alloc"):
        started(Misspelt)

    class Own(EncoderCacheManager):
        conformance_capabilities = ("x-loads", "allocate_again")

    assert "x-loads" in started(Own).capabilities["encoder_cache"]
