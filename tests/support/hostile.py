"""The commands of both programs, how each can be called, and targets that mean no good."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import click

from mmcache_conformance.cli import cli as conformance
from mmcache_spec.cli.app import cli as specification

from .live import pretended

__all__ = [
    "COMMANDS",
    "PROGRAMS",
    "TARGETED",
    "Forked",
    "example",
    "program",
    "takes",
    "target_words",
    "wait_for",
]

PROGRAMS: Mapping[str, click.Group] = {
    "mmcache_conformance": conformance,
    "mmcache_spec": specification,
}

COMMANDS: Sequence[tuple[str, str]] = [
    (module, name) for module, group in PROGRAMS.items() for name in sorted(group.commands)
]
"""Every command, as the programs themselves list them."""


def _parameters(module: str, name: str) -> dict[str, click.Parameter]:
    return {p.name or "": p for p in PROGRAMS[module].commands[name].params}


def takes(command: tuple[str, str], option: str) -> bool:
    """Whether the command has this option."""
    return any(option in p.opts for p in _parameters(*command).values())


def _targets(command: tuple[str, str]) -> list[str]:
    """How a command is given a target, if it tests any."""
    parameters = _parameters(*command)
    if parameters.keys() & {"target", "targets"} and "--passes" not in str(
        [p.opts for p in parameters.values()]
    ):
        return []
    return ["--also"] if takes(command, "--also") else ["none"]


TARGETED = [c for c in COMMANDS if _targets(c) != ["none"]]
"""The commands that run a manager of the user's."""

_ARGUMENTS = {
    "targets": "reference",
    "target": "reference",
    "vector_id": "unfiltered_report",
    "variant": "unfiltered_report",
    "variants": "unfiltered_report",
    "models": "encoder_decoder",
    "clause": "L1",
}


def example(command: tuple[str, str], folder: Path) -> list[str]:
    """A call of the command that works, made from what its parameters are called.

    A new argument needs a line in `_ARGUMENTS`, or this fails.
    """
    words = [command[1]]
    if takes(command, "--environments"):  # else it would install a vLLM
        if not (folder / "environments").exists():
            pretended(folder / "environments", {})
        words += ["--environments", str(folder / "environments"), "--vllm", "0.32.0"]
    for parameter in _parameters(*command).values():
        if "--check" in parameter.opts and parameter.type is click.BOOL:
            words.append("--check")
        if not parameter.required:
            continue
        assert parameter.name is not None
        if isinstance(parameter, click.Option):
            words += [parameter.opts[0], str(folder / "new")]
            continue
        if isinstance(parameter.type, click.Choice):
            words.append(str(parameter.type.choices[0]))
        elif parameter.name == "logs":
            log = folder / "log.jsonl"
            log.write_text('{"format":"mmcache/log","format_version":1,"producer":"a test"}\n')
            words.append(str(log))
        elif parameter.name == "directory":
            words.append(str(folder / "new"))
        else:
            words.append(_ARGUMENTS[parameter.name])
    return words


def program(
    command: tuple[str, str], arguments: Sequence[str], folder: Path, **environment: str
) -> subprocess.Popen[bytes]:
    """The program as a user starts it, in a folder, with both outputs as pipes."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(folder)])
    return subprocess.Popen(
        [sys.executable, "-m", command[0], *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_as_from_a_terminal,
    )


def _as_from_a_terminal() -> None:
    """Whoever runs the tests may ignore signals, as `nohup` does, and a child would too."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Forked:
    """A command in a copy of this process, which has loaded everything already.

    Standard output is what the caller says; standard error is kept.
    """

    def __init__(
        self, command: tuple[str, str], words: Sequence[str], out: int, encoding: str = "utf-8"
    ) -> None:
        errors, self._err = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._become(command, words, out, encoding)
        os.close(self._err)
        self._err = errors

    def _become(
        self, command: tuple[str, str], words: Sequence[str], out: int, encoding: str
    ) -> NoReturn:
        code = 99
        try:
            os.setsid()
            # As an interpreter begins.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(self._err, 2)
            os.closerange(3, 256)
            sys.stdout, sys.stderr = (
                io.TextIOWrapper(
                    io.BufferedWriter(io.FileIO(file, "w")), encoding, write_through=True
                )
                for file in (1, 2)
            )
            sys.argv = [command[0].replace("_", "-"), *words]
            try:
                importlib.import_module(f"{command[0]}.cli").main()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def worked(self) -> float:
        """The seconds of a processor that it has used so far."""
        times = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    def asleep(self) -> bool:
        """Whether it waits for something, and has done so for a while."""
        for _ in range(6):
            if Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
                return False
            time.sleep(0.03)
        return True

    def end(self) -> tuple[int, str]:
        """The exit code as a shell has it, and what was said on standard error."""
        said = b""
        with os.fdopen(self._err, "rb") as errors:
            said = errors.read()
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return (128 - code if code < 0 else code), said.decode(errors="replace")


def target_words(command: tuple[str, str], target: str) -> list[str]:
    """The command on this target."""
    return [command[1], *_targets(command), target]


def wait_for(what: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait until a function says yes."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.02)
    return what()
