"""Hostile targets, files, indexes, signals and terminals, on every command of both programs.

The commands are those of the click groups: a new one is covered without being listed here.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from mmcache_conformance.cli import cli
from mmcache_conformance.exits import ExitCode
from mmcache_conformance.targets.vllm.index import IndexSettings
from tests.known_bad.hostile import HOSTILE, IN_PROCESS
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


@pytest.mark.usefixtures("_no_index")
class TestTargets:
    @pytest.mark.parametrize("command", IN_A_CHILD, ids="-".join)
    @pytest.mark.parametrize("name", HOSTILE)
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
        wait_for(running.asleep, 3.0)
        os.killpg(running.pid, signal.SIGINT)
        code, said = running.end()
        os.close(reads)
        assert code == ExitCode.INTERRUPTED, said
        assert "Traceback" not in said
        assert said.strip().splitlines()[-1].startswith("interrupted")


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
