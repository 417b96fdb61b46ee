"""`make bench`: every benchmark, one after the other."""

import runpy
import sys
import tempfile
from pathlib import Path

from mmcache_conformance.errors import TargetError
from mmcache_conformance.targets.vllm.source import find_source

HERE = Path(__file__).parent


def vllm_file(folder: str) -> list[str]:
    """vLLM 0.33.0's manager, to compare the reference with; nothing where it cannot be had."""
    try:
        source = find_source("0.33.0")
    except TargetError as error:
        print(f"without vLLM: {error}")
        return []
    path = Path(folder) / "encoder_cache_manager.py"
    path.write_bytes(source.content)
    return ["--vllm-file", str(path)]


with tempfile.TemporaryDirectory() as folder:
    arguments = {"bench_manager": vllm_file(folder), "bench_spec": ["--scopes"]}
    for script in sorted(HERE.glob("bench_*.py")):
        print(f"\n=== {script.stem}", flush=True)
        sys.argv = [str(script), *arguments.get(script.stem, [])]
        runpy.run_path(str(script), run_name="__main__")
