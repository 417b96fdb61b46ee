"""Hostile targets, files, indexes, signals and terminals, on every command of both programs.

The commands are those of the click groups: a new one is covered without being listed here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner

from mmcache import EncoderCacheManager
from mmcache_conformance.cli import cli
from mmcache_conformance.errors import TargetError
from mmcache_conformance.exits import ExitCode
from mmcache_conformance.targets.python import ManagerClasses, PythonTarget
from mmcache_conformance.targets.vllm import wheel
from mmcache_conformance.targets.vllm.index import IndexSettings
from mmcache_conformance.targets.vllm.source import MANAGER_FILE, find_source
from mmcache_conformance.verdicts.run import run_vector
from mmcache_vectors.manager import VectorError, decode, encode
from tests.known_bad.hostile import EVIL, HOSTILE, IN_PROCESS
from tests.support.hostile import (
    COMMANDS,
    PROGRAMS,
    TARGETED,
    Forked,
    example,
    program,
    takes,
    target_words,
    wait_for,
)

HERE = "tests.known_bad.hostile"
IN_THIS_PROCESS = [c for c in TARGETED if not takes(c, "--in-process")]
IN_A_CHILD = [c for c in TARGETED if takes(c, "--in-process")]


def _few(command: tuple[str, str], vectors: Path, *more: str) -> list[str]:
    """The options that make the command quick."""
    few = [("--count", ["300"]), ("--releases", ["0.0.1"]), ("--timeout", ["0.5"])]
    few.append(("--vectors", [str(vectors)]))
    return [word for o, v in few if takes(command, o) for word in (o, *v)] + list(more)


@pytest.fixture
def _no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that there is not is not looked for."""
    monkeypatch.setattr(
        "mmcache_conformance.targets.vllm.wheel.pip_settings", lambda: IndexSettings(())
    )


def _each_once() -> list[Any]:
    """Everything on every command: quick is all of it on `run`, and each command once."""
    quick = {(("mmcache_conformance", "run"), name) for name in HOSTILE}
    quick |= set(zip(IN_A_CHILD, HOSTILE, strict=False))
    return [
        pytest.param(
            command,
            name,
            id=f"{name}-{'-'.join(command)}",
            marks=[] if (command, name) in quick else pytest.mark.slow,
        )
        for name in HOSTILE
        for command in IN_A_CHILD
    ]


@pytest.mark.usefixtures("_no_index")
class TestTargets:
    @pytest.mark.parametrize(("command", "name"), _each_once())
    def test_what_a_target_does_to_its_process_costs_only_itself(
        self,
        command: tuple[str, str],
        name: str,
        vector_directory: Path,
    ) -> None:
        """In this very process: if any of it came through, the tests would end here."""
        words = [*target_words(command, f"{HERE}:{name}"), *_few(command, vector_directory)]
        done = CliRunner().invoke(cli, words)
        assert done.exception is None or isinstance(done.exception, SystemExit)
        assert "Traceback" not in done.output
        assert "internal error" not in done.output
        # A matrix of what cannot be run is no verdict, `expected` makes a list of failures, and
        # `smoke` does not come to the call.
        judges = command[1] in {"run", "differ"}
        if HOSTILE[name] == "passes" and command[1] != "matrix":
            assert done.exit_code == 0, done.output
        if HOSTILE[name] == "fails" and judges:
            assert done.exit_code == 1, done.output
        if HOSTILE[name] == "does not start" and command[1] != "matrix":
            assert done.exit_code == 3, done.output
        if HOSTILE[name] == "cannot be compared" and judges:
            assert "not compared: encoder_cache: cached cannot be read: SystemExit" in done.output

    @pytest.mark.parametrize("name", IN_PROCESS)
    def test_nor_does_it_end_a_command_that_runs_it_in_its_process(
        self, name: str, vector_directory: Path, tmp_path: Path
    ) -> None:
        for command in IN_THIS_PROCESS:
            small = ["--hashes", "2", "--inputs", "1", "--capacity", "3"]
            words = [*target_words(command, f"{HERE}:{name}"), *small, "--json"]
            with program(command, words, tmp_path) as running:
                out, err = running.communicate(timeout=120)
            assert running.returncode == {"fails": 1, "passes": 0}[HOSTILE[name]] or (
                name == "ExitsHard" and running.returncode == 3
            ), err.decode()
            if running.returncode != 3:
                assert out.startswith(b"{")
                assert out.endswith(b"}\n")
            assert b"Traceback" not in err

    def test_in_process_means_this_process(self, vector_directory: Path, tmp_path: Path) -> None:
        words = ["run", f"{HERE}:ExitsHard", "--in-process", "--vectors", str(vector_directory)]
        with program(("mmcache_conformance", "run"), words, tmp_path) as running:
            _, err = running.communicate(timeout=120)
        assert running.returncode == 3
        assert b"ended with code 0: nothing is concluded" in err

    def test_one_row_of_a_matrix_costs_that_row(self, vector_directory: Path) -> None:
        rows = [f"{HERE}:{name}" for name in ("InterruptsAtOnce", "ExitsHard", "Shouts")]
        words = [word for row in rows for word in ("--also", row)]
        words += ["--releases", "0.0.1", "--vectors", str(vector_directory)]
        done = CliRunner().invoke(cli, ["matrix", *words])
        assert done.exit_code == 0
        assert "KeyboardInterrupt" in done.output


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
class TestTerminals:
    """Each in a copy of this process, which takes some milliseconds."""

    def test_a_reader_that_goes_away(self, command: tuple[str, str]) -> None:
        reads, writes = os.pipe()
        os.close(reads)
        running = Forked(command, [command[1], "--help"], writes)
        os.close(writes)
        assert running.end() == (ExitCode.BROKEN_PIPE, "")

    def test_a_full_disk(self, command: tuple[str, str]) -> None:
        full = os.open("/dev/full", os.O_WRONLY)
        code, said = Forked(command, [command[1], "--help"], full).end()
        os.close(full)
        assert code == ExitCode.COULD_NOT
        assert said == "cannot write: No space left on device\n"

    def test_letters_that_the_terminal_lacks(
        self, command: tuple[str, str], tmp_path: Path
    ) -> None:
        """What fails because of a letter would fail with a traceback, and with 1: a verdict."""
        file = os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT)
        words = [command[1], "--no-such-option", "\u2717\udcff"]
        code, said = Forked(command, words, file, "ascii").end()
        assert code == ExitCode.USAGE
        assert "Traceback" not in said
        code, said = Forked(command, [command[1], "--help"], file, "ascii").end()
        os.close(file)
        assert (code, said) == (0, "")

    def test_ctrl_c(
        self, command: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While it works or, if it has done all of that, while it writes to who does not read."""
        monkeypatch.chdir(tmp_path)
        reads, writes = os.pipe()
        os.set_blocking(writes, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(writes, b"x" * 4096):
                pass
        os.set_blocking(writes, True)
        running = Forked(command, example(command, tmp_path), writes)
        os.close(writes)
        wait_for(lambda: running.worked() > 0.3 or running.asleep())
        os.killpg(running.pid, signal.SIGINT)
        code, said = running.end()
        os.close(reads)
        assert code == ExitCode.INTERRUPTED, said
        assert "Traceback" not in said
        assert said.strip().splitlines()[-1].startswith("interrupted")


class TestReports:
    """The verdict first; a report that cannot be written costs itself."""

    def test_two_reports_are_two_files(self, tmp_path: Path) -> None:
        words = ["--html", str(tmp_path / "x"), "--junit", str(tmp_path / "." / "x")]
        done = CliRunner().invoke(cli, ["run", *words])
        assert done.exit_code == ExitCode.USAGE
        assert "--html and --junit name one file" in done.output

    @pytest.mark.parametrize("path", ["absent/x", "."])
    def test_a_path_is_tried_before_the_work(
        self, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mmcache_conformance.verdicts.run.run_target", None)
        done = CliRunner().invoke(cli, ["run", "--markdown", str(tmp_path / path)])
        assert done.exit_code == ExitCode.USAGE

    def test_a_full_disk_costs_the_report(self, vector_directory: Path, tmp_path: Path) -> None:
        good = tmp_path / "good.md"
        words = ["--html", "/dev/full", "--markdown", str(good), "--vectors", str(vector_directory)]
        done = CliRunner().invoke(cli, ["run", "-q", *words])
        assert done.exit_code == ExitCode.COULD_NOT
        assert done.stdout.startswith("reference     7 passed")
        assert "/dev/full is not written: No space left on device" in done.stderr
        assert "reference" in good.read_text()

    def test_a_report_is_whole_or_as_it_was(
        self, vector_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        report, link = tmp_path / "r.md", tmp_path / "link.md"
        report.write_text("before")
        report.chmod(0o640)
        link.symlink_to(report)

        def broken(*names: object) -> None:
            raise OSError(5, "broken")

        words = ["run", "-q", "--markdown", str(link), "--vectors", str(vector_directory)]
        with monkeypatch.context() as patch:
            patch.setattr("os.replace", broken)
            assert CliRunner().invoke(cli, words).exit_code == ExitCode.COULD_NOT
        assert report.read_text() == "before"
        assert sorted(f.name for f in tmp_path.iterdir()) == ["link.md", "r.md", "vectors"]
        assert CliRunner().invoke(cli, words).exit_code == 0
        assert link.is_symlink()
        assert report.read_text().startswith("#")
        assert report.stat().st_mode & 0o777 == 0o640


class TestInjection:
    @pytest.mark.parametrize("command", TARGETED, ids="-".join)
    def test_what_a_target_says_steers_no_terminal(
        self, command: tuple[str, str], vector_directory: Path
    ) -> None:
        words = target_words(command, f"{HERE}:Injects")
        done = CliRunner().invoke(cli, [*words, *_few(command, vector_directory)])
        assert "Traceback" not in done.output
        assert not set(done.output) & set("\x1b\x07\x9b\u202e")
        assert len(done.output) < 500_000

    def test_nor_is_it_markup(self, vector_directory: Path, tmp_path: Path, hand_made: Any) -> None:
        evil = msgspec.structs.replace(hand_made["reset-while-referenced"], clauses=(EVIL,))
        (vector_directory / f"{evil.id}.json").write_bytes(encode(evil))
        page, summary = tmp_path / "page.html", tmp_path / "summary.md"
        words = ["run", f"{HERE}:Injects", "--vectors", str(vector_directory)]
        words += ["--html", str(page), "--markdown", str(summary)]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 1, done.output
        assert "<script>alert" not in page.read_text()
        table = summary.read_text().partition("<details>")[0]
        assert "<script>" not in table
        assert not set(done.output) & set("\x1b\x07\x9b\u202e")


class TestFiles:
    @pytest.mark.parametrize("how", ["deflate", "lzma", "bomb"])
    def test_a_damaged_wheel(self, how: str, tmp_path: Path) -> None:
        path = tmp_path / "vllm-0.0.1-py3-none-any.whl"
        method = zipfile.ZIP_LZMA if how == "lzma" else zipfile.ZIP_DEFLATED
        content = bytes(5 << 20) if how == "bomb" else bytes(range(256)) * 40
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr(MANAGER_FILE, content)
            offset = archive.getinfo(MANAGER_FILE).header_offset
        if how != "bomb":
            data = bytearray(path.read_bytes())
            begin = offset + 30 + len(MANAGER_FILE)
            data[begin + 9 : begin + 60] = bytes(51)
            path.write_bytes(data)
        with pytest.raises(TargetError, match="cannot be read"):
            find_source(str(path))

    def test_a_cached_release_that_is_damaged_is_named_and_read_anew(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fetched: list[str] = []

        def fetch(version: str, files: Sequence[str], settings: object) -> Any:
            fetched.append(version)
            return SimpleNamespace(digests={}, size=1), dict.fromkeys(files, b"right")

        monkeypatch.setattr(wheel, "pip_settings", lambda: IndexSettings(("https://none",)))
        monkeypatch.setattr(wheel, "_fetch", fetch)

        def read(**more: bool) -> bytes:
            return wheel.read_release("0.0.1", ("a.py",), cache=tmp_path, **more)["a.py"]

        assert (read(), read(), fetched) == (b"right", b"right", ["0.0.1"])
        read(refresh=True)
        (file,) = tmp_path.rglob("a.py")
        file.write_bytes(b"wrong")
        assert (read(), len(fetched), file.read_bytes()) == (b"right", 3, b"right")
        file.write_bytes(b"wrong")
        monkeypatch.setattr(wheel, "pip_settings", lambda: IndexSettings(()))
        with pytest.raises(TargetError, match=rf"{file} is damaged, and pip is configured"):
            read()

    def test_an_index_that_drips(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A byte now and then, each within the limit of a read, for ever."""
        over = threading.Event()
        listener = socket.create_server(("127.0.0.1", 0))

        def drip() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not over.wait(0.02):
                    connection.sendall(b"x")

        threading.Thread(target=drip, daemon=True).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/simple"
        monkeypatch.setattr(wheel, "pip_settings", lambda: IndexSettings((address,)))
        monkeypatch.setattr(wheel, "DEADLINE_SECONDS", 0.5)
        with pytest.raises(TargetError, match=r"did not give 0\.0\.1 within 0\.5 s"):
            wheel.read_release("0.0.1", ("a.py",), cache=tmp_path)
        over.set()
        listener.close()

    @pytest.mark.parametrize("wrong", [None, 7, "allocate_again", ["x-mine", 1]])
    def test_capabilities_that_are_none(
        self, wrong: object, start: Callable[..., PythonTarget]
    ) -> None:
        mine = type("Mine", (EncoderCacheManager,), {"conformance_capabilities": wrong})
        with pytest.raises(TargetError, match=r"conformance_capabilities is .*; give a tuple"):
            start(mine)

    def test_a_vector_without_steps_is_refused(self, tmp_path: Path, hand_made: Any) -> None:
        empty = msgspec.structs.replace(next(iter(hand_made.values())), steps=())
        with pytest.raises(VectorError, match=r"at \$\.steps: Expected `array` of length >= 1"):
            decode(encode(empty), "x.json")


class Int64:
    """As numpy has integers: no `int`, and one all the same."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


@pytest.mark.parametrize(
    ("off", "outcome"), [(0, "pass"), (7, "fail")], ids=["right", "wrong by seven"]
)
def test_integers_of_any_library_are_compared(
    off: int, outcome: str, start: Callable[..., PythonTarget], hand_made: Any
) -> None:
    class Mine(EncoderCacheManager):
        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            # Whoever looks from outside: the class itself counts as it did.
            outside = sys._getframe(1).f_globals["__name__"].startswith("mmcache_conformance")
            return Int64(value + off) if name == "num_free_slots" and outside else value

    target = start(Mine)
    vector = hand_made["reset-while-referenced"]
    assert "num_free_slots" in target.start().capabilities["encoder_cache"]
    assert run_vector(target, target.start(), vector, stretch=False).outcome == outcome


@pytest.mark.parametrize("wrong", [None, {1}, 7.0, "7"])
def test_what_cannot_be_compared_is_told(wrong: object, start: Callable[..., PythonTarget]) -> None:
    class Mine(EncoderCacheManager):
        num_freeable_slots: Any = property(lambda self: wrong, lambda self, value: None)

    (said,) = PythonTarget("x", lambda: ManagerClasses("x", Mine, None)).start().uncompared
    kind = type(wrong).__name__
    assert said == (
        f"encoder_cache: num_freeable_slots is of type {kind}, which cannot be compared"
    )


class TestNumbers:
    @pytest.mark.parametrize("command", COMMANDS, ids="-".join)
    def test_every_number_has_two_bounds(self, command: tuple[str, str]) -> None:
        for parameter in PROGRAMS[command[0]].commands[command[1]].params:
            kind = parameter.type
            assert not isinstance(kind, type(click.INT) | type(click.FLOAT)) or isinstance(
                kind, click.IntRange | click.FloatRange
            ), parameter.opts
            if not isinstance(kind, click.IntRange | click.FloatRange):
                continue
            assert kind.min is not None, parameter.opts
            assert kind.max is not None, parameter.opts
            wrong: Any
            for wrong in ("9" * 5000, "-1", "nan", "inf", "1e400"):
                with pytest.raises(click.BadParameter):
                    kind.convert(wrong, parameter, None)


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
    @pytest.mark.parametrize("way", [(), ("cmd",)], ids=["class", "command"])
    def test_no_child_outlives_its_harness(
        self, number: signal.Signals, way: tuple[str, ...], tmp_path: Path
    ) -> None:
        """Neither the process of the target nor what that has started in another session."""
        note = tmp_path / "pid"
        if way:
            script = tmp_path / "adapter.sh"
            script.write_text(f"setsid sleep 600 & echo $! > {note}; cat > /dev/null\n")
            target = f"cmd:sh {script}"
        else:
            (tmp_path / "hangs.py").write_text(
                "import time\nfrom tests.known_bad.hostile import LeavesAProcess\n"
                "class Both(LeavesAProcess):\n"
                "    def allocate(self, request, input_id):\n        time.sleep(600)\n"
            )
            target = "hangs:Both"
        words = ["run", target, "--timeout", "500"]
        with program(
            ("mmcache_conformance", "run"), words, tmp_path, NOTE_OF_ITS_PROCESS=str(note)
        ) as running:
            assert wait_for(lambda: note.exists() and note.read_text().endswith("\n"))
            grandchild = int(note.read_text())
            assert _alive(grandchild)
            running.send_signal(number)
            running.communicate(timeout=60)
        assert wait_for(lambda: not _alive(grandchild))
        assert running.returncode == -number

    def test_nor_does_it_outlive_a_run_that_is_over(
        self, vector_directory: Path, tmp_path: Path
    ) -> None:
        note = tmp_path / "pid"
        words = ["run", f"{HERE}:LeavesAProcess", "--vectors", str(vector_directory)]
        with program(
            ("mmcache_conformance", "run"), words, tmp_path, NOTE_OF_ITS_PROCESS=str(note)
        ) as running:
            running.communicate(timeout=120)
        assert running.returncode == 0
        assert wait_for(lambda: not _alive(int(note.read_text())))


def _alive(pid: int) -> bool:
    """Whether there is such a process, and not only its name."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    os.kill(pid, 0)
    return state not in "ZX"
