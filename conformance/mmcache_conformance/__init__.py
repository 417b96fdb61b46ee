"""Does an implementation of the multimodal encoder cache do what the specification says?

Vectors (`suites`) are run on a target (`open`): a manager in any language, or a whole engine. What
comes back is judged (`verdicts`) and told (`reports`). `mmcache-conformance --help` and `docs/` say
how. From Python:

    vectors = load_suite()
    report = run_target(open_target("my_engine.cache:MyManager"), vectors)
    assert exit_code([report]) == 0

Everything else in this package may change without notice.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import TargetError
    from .open import open_target
    from .suites.load import load_suite
    from .verdicts.model import RunReport
    from .verdicts.run import exit_code, run_target

__all__ = ["RunReport", "TargetError", "exit_code", "load_suite", "open_target", "run_target"]

_HOME = {
    "RunReport": ".verdicts.model",
    "TargetError": ".errors",
    "exit_code": ".verdicts.run",
    "load_suite": ".suites.load",
    "open_target": ".open",
    "run_target": ".verdicts.run",
}


def __getattr__(name: str) -> Any:
    # pytest and vLLM load a module of this package in every process that they start, so that the
    # package itself imports nothing before it is asked.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name], __name__), name)
