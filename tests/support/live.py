"""An environment of a live vLLM that is none: its interpreter says what it was asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mmcache_conformance.engines.vllm_live.environment import Environment, environment

__all__ = ["pretended"]


def pretended(folder: Path, codes: Mapping[str, int], release: str = "0.32.0") -> Environment:
    """An environment that is ready; it ends as is told of each target."""
    place = environment(folder, release)
    place.python.parent.mkdir(parents=True)
    lines = [f'*" {name} "*) exit {code};;' for name, code in codes.items()]
    place.python.write_text(
        "#!/bin/sh\n"
        f'echo "$MMCACHE_LIVE_MODEL $MMCACHE_RECORD $*" >> {folder}/asked\n'
        'echo "played"\n'
        f'case " $* " in {" ".join(lines)} esac\n'
    )
    place.python.chmod(0o755)
    (place.folder / "mmcache-live").write_text("ready\n")
    return place
