"""Coverage-guided fuzzing of everything that reads what others wrote.

    python -m tests.tools.fuzz vectors|logs|replies [-runs=N] [-seed=N] ...

Whatever the bytes, a reader gives a result or its own error with a sentence; any other exception is
a crash, which atheris reports with the input. Half of the mutations change the bytes, half the JSON
in them, so that what is read gets past the parser. Options with one dash are atheris' own.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["mmcache_conformance", "mmcache_spec", "mmcache"]):
    from mmcache_conformance.errors import AdapterError, TargetError
    from mmcache_conformance.logs.check import check_log
    from mmcache_conformance.logs.format import LogError
    from mmcache_conformance.open import open_target
    from mmcache_conformance.suites.load import load_suite
    from mmcache_conformance.targets import command as command_target
    from mmcache_conformance.targets.protocol import OBSERVABLES, case_of
    from mmcache_conformance.verdicts.run import run_target
    from mmcache_vectors.manager import VectorError, decode, encode

_VECTORS = load_suite()


# --- what is fuzzed ----------------------------------------------------------------------------


def read_vector(data: bytes) -> None:
    """A vector file, and if it is one, its run on the reference."""
    try:
        vector = decode(data, "a.json")
    except VectorError:
        return
    report = run_target(open_target("reference"), (vector,), stretch=False)
    assert report.verdicts[0].outcome != "error", report.verdicts[0].reason
    assert decode(encode(vector), "b.json") == vector


def read_log(data: bytes) -> None:
    lines = data.splitlines(keepends=True)
    try:
        check_log(lambda: lines, "a.jsonl", audit_every=50)
    except LogError:
        return


_TARGET = command_target.CommandTarget("cmd:none", "none")
_TARGET._seq = 1
_TARGET._observed["encoder_cache"] = tuple((n, n == "num_free_slots") for n in OBSERVABLES)


def read_reply(data: bytes) -> None:
    """A line of an adapter, as the reply to `start` and to a `run`."""
    for read in (command_target._started, _answers):
        try:
            read(data)
        except (AdapterError, TargetError):
            continue


def _answers(line: bytes) -> Any:
    case = case_of(_VECTORS[0])
    return _TARGET._answers(case.manager, len(case.calls), line)


# --- how it is changed -------------------------------------------------------------------------

_ODD: list[Any] = [[], {}, [[]]]
_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**63,
    2**70,
    1.5,
    "",
    "A",
    "r1",
    "\ud800",
    [],
    {},
    [[]],
)


def _change(value: Any, chance: random.Random, words: list[str]) -> Any:
    """One change somewhere in a JSON value."""
    kind = chance.randrange(6)
    if isinstance(value, dict) and value and kind:
        key = chance.choice(sorted(value))
        if kind == 1:
            return {k: v for k, v in value.items() if k != key}
        if kind == 2:
            return {**value, chance.choice(words): value[key]}
        return {**value, key: _change(value[key], chance, words)}
    if isinstance(value, list) and value and kind:
        at = chance.randrange(len(value))
        if kind == 1:
            return value[:at] + value[at + 1 :]
        if kind == 2:
            return [*value[: at + 1], *value[at:]]
        return [*value[:at], _change(value[at], chance, words), *value[at + 1 :]]
    if isinstance(value, int) and not isinstance(value, bool) and kind > 1:
        return value + chance.choice((-2, -1, 1, 2))
    if isinstance(value, str) and kind > 2:
        return chance.choice(words)
    return chance.choice(_VALUES)


_WORDS = [
    "request",
    "input_id",
    "op",
    "returns",
    "check_and_update_cache",
    "can_allocate",
    "allocate",
    "free",
    "reset",
    "free_encoder_input",
    "get_freed_mm_hashes",
    "worker_step",
    "pass",
    "end",
    "new",
    "manager",
    "seq",
    "identifier",
    "num_embeds",
    "r1",
    "r2",
    "A",
    "B",
    "C",
    "h0",
    "h1",
    "encoder_cache",
    "encoder_decoder",
]


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """Change the JSON of one of the lines; other bytes as atheris does."""
    chance = random.Random(seed)
    if chance.random() < 0.5:
        changed: bytes = atheris.Mutate(data, most)
        return changed
    lines = data.split(b"\n") if data.count(b"\n{") else [data]
    at = chance.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        return bytes(atheris.Mutate(data, most))
    for _ in range(chance.choice((1, 1, 2, 3))):
        value = _change(value, chance, _WORDS)
    lines[at] = json.dumps(_with_its_id(value)).encode()
    return b"\n".join(lines)[:most]


def _with_its_id(value: Any) -> Any:
    """A vector whose content was changed gets the id of its new content, as a forger would do."""
    if not isinstance(value, dict) or "parameters" not in value:
        return value
    try:
        decode(json.dumps(value).encode(), "a.json")
    except VectorError as error:
        wanted = str(error).partition("the content makes it '")[2].partition("'")[0]
        if wanted:
            return {**value, "id": wanted}
    return value


# --- seeds -------------------------------------------------------------------------------------


def _seeds(what: str, directory: Path) -> None:
    found: list[bytes]
    if what == "vectors":
        found = [encode(v) for v in _VECTORS]
    elif what == "logs":
        from tests.support.logs import recorded

        log = recorded(directory / "logs", passes=12)
        found = [b"".join(log[: k * 8]) for k in range(1, 8)]
    else:
        started = {
            "protocol": 1,
            "implementation": {"name": "n", "language": "l", "version": "1"},
            "capabilities": {"encoder_cache": ["allocate", "cached"]},
        }
        steps = _VECTORS[0].steps
        ran = {
            "seq": 1,
            "answers": [{"returns": True, "observed": {"num_free_slots": 1}} for _ in steps],
        }
        found = [json.dumps(m).encode() for m in (started, ran, {"seq": 1, "errored": "no"})]
    for k, data in enumerate(found):
        (directory / f"seed-{k}").write_bytes(data)


_READERS: dict[str, Callable[[bytes], None]] = {
    "vectors": read_vector,
    "logs": read_log,
    "replies": read_reply,
}


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what not in _READERS:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as name:
        _seeds(what, Path(name))
        arguments = [sys.argv[0], *sys.argv[2:], "-max_len=8000", name]
        atheris.Setup(arguments, _READERS[what], custom_mutator=mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
