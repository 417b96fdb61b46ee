"""The processor caches of a released vLLM, read out of its wheel and executed without torch.

Three things are the release's own: the two cache classes, the procedure by which P0 takes the items
of a request (`_merge_mm_kwargs`), and the order in which they are sent (`argsort_mm_positions`).
What their files import besides has stand-ins: a tensor is an object with a number of bytes.
"""

from __future__ import annotations

import ast
import builtins
import collections
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from packaging.version import Version

from ..errors import TargetError, describe_exception
from ..targets.vllm.wheel import is_version, read_release

__all__ = ["FIRST", "Released", "Tensor", "load_released"]

FIRST = "0.11.0"
"""The first release that is read."""

_PROCEDURES = {"_merge_mm_kwargs", "argsort_mm_positions"}


class Tensor:
    """Stands for a tensor: it has a size, and says which item's data it is."""

    def __init__(self, nbytes: int, origin: str) -> None:
        self.nbytes = nbytes
        self.origin = origin


@dataclass(frozen=True)
class Released:
    """What was read of one release."""

    version: str
    sender: type
    receiver: type
    miss: type[Exception] | None
    """What the receiver raises where data is missing; None where that is an assertion."""
    merge: Any
    argsort: Any
    item: type
    goes_on: bool
    """Whether a failed request at P1 ends that request alone."""


def load_released(version: str, *, refresh: bool = False) -> Released:
    """The classes and procedures of the release. Raises `TargetError`."""
    if not is_version(version):
        raise TargetError(f"not a release such as 0.33.0: {version}")
    version = version.removeprefix("v")
    parsed = Version(version)
    if parsed < Version(FIRST):
        raise TargetError(f"out of scope: vLLM {version}; {FIRST} is the first that is read")
    files = _files(parsed)
    content = read_release(version, tuple(files.values()), refresh=refresh)
    try:
        return _executed(version, files, content)
    except TargetError:
        raise
    except Exception as error:
        raise TargetError(
            f"the processor cache of vLLM {version} cannot be loaded: {describe_exception(error)}"
        ) from None


def _files(version: Version) -> dict[str, str]:
    """Where the release has what, by the name under which it is imported."""
    split, folder = version >= Version("0.31.0"), version >= Version("0.15.0")
    utils = version >= Version("0.11.1")
    processing = "processing/processor.py" if folder else "processing.py"
    files = {
        "vllm.utils": "vllm/utils/__init__.py",
        "vllm.utils.jsontree": "vllm/utils/jsontree.py",
        "processing": f"vllm/multimodal/{processing}",
        "positions": "vllm/multimodal/utils.py",
        "core": "vllm/v1/engine/core.py",
    }
    if utils:
        files["vllm.utils.cache"] = "vllm/utils/cache.py"
    if split:
        files["vllm.multimodal.cache.base"] = "vllm/multimodal/cache/base.py"
        files["vllm.multimodal.cache.lru"] = "vllm/multimodal/cache/lru.py"
    else:
        files["vllm.multimodal.cache"] = "vllm/multimodal/cache.py"
    return files


class _Item(collections.UserDict[str, Any]):
    """Stands for `MultiModalKwargsItem`."""


class _Items(collections.UserDict[str, Any]):
    """Stands for `MultiModalKwargsItems`."""


class _Anything:
    """Stands for what is only named: in annotations, as a base, or as a logger."""

    def __init__(self, *arguments: object, **named: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **named: None

    def __class_getitem__(cls, key: object) -> type:
        return cls


class _Default(collections.defaultdict[Any, Any]):
    def __class_getitem__(cls, key: Any) -> Any:
        return cls


def _executed(version: str, files: Mapping[str, str], content: Mapping[str, bytes]) -> Released:
    try:
        import cachetools  # noqa: F401
    except ModuleNotFoundError:
        raise TargetError("vLLM's caches need cachetools; pip install cachetools") from None
    torch = ModuleType("torch")
    torch.__dict__["Tensor"] = Tensor
    known: dict[str, ModuleType] = {"torch": torch}
    inputs = _stand_in("vllm.multimodal.inputs")
    inputs.__dict__.update(
        MultiModalKwargsItem=_Item,
        MultiModalKwargsItems=_Items,
        MultiModalFieldElem=type("MultiModalFieldElem", (), {}),
    )
    known["vllm.multimodal.inputs"] = inputs
    memory = _stand_in("vllm.utils.mem_constants")
    # A capacity of so many gibibytes is then one of so many bytes.
    memory.__dict__.update(GiB_bytes=1, MiB_bytes=1)
    known["vllm.utils.mem_constants"] = memory
    paths = {name: content[path] for name, path in files.items()}
    utils = _stand_in("vllm.utils")
    utils.__dict__.update(GiB_bytes=1, MiB_bytes=1)
    if "vllm.utils.cache" not in paths:
        names = {"LRUCache", "CacheInfo", "_MappingOrderCacheView", "_Sentinel"}
        source = _cut(paths["vllm.utils"], names, {"_K", "_V", "_T", "ALL_PINNED_SENTINEL"})
        _execute("vllm.utils", source, files["vllm.utils"], known, utils)
    known["vllm.utils"] = utils
    for name in ("vllm.utils.cache", "vllm.utils.jsontree", *_CACHES):
        if name in paths:
            known[name] = _execute(name, paths[name], files[name], known)
    caches = [known[name].__dict__ for name in _CACHES if name in known]
    there: dict[str, Any] = {n: v for cache in caches for n, v in cache.items()}
    space: dict[str, Any] = {"defaultdict": _Default, "MultiModalKwargsItems": dict}
    for name in ("processing", "positions"):
        for function in _functions(paths[name]):
            exec(compile(function, files[name], "exec", dont_inherit=True), space)
    missing = _PROCEDURES - space.keys()
    if missing:
        raise TargetError(f"vLLM {version} has no {' and '.join(sorted(missing))}")
    return Released(
        version,
        _first(there, "LruKeyReplicatedSenderCache", "MultiModalProcessorSenderCache"),
        _first(there, "LruKeyReplicatedReceiverCache", "MultiModalReceiverCache"),
        there.get("MultiModalCacheMissError"),
        space["_merge_mm_kwargs"],
        space["argsort_mm_positions"],
        _Item,
        b"_handle_request_preproc_error" in paths["core"],
    )


_CACHES = ("vllm.multimodal.cache", "vllm.multimodal.cache.base", "vllm.multimodal.cache.lru")


def _first(names: Mapping[str, Any], *wanted: str) -> Any:
    found = next((names[name] for name in wanted if name in names), None)
    if found is None:
        raise TargetError(f"the file has no class {' or '.join(wanted)}")
    return found


def _stand_in(name: str) -> ModuleType:
    """A module of which every name is there and means nothing."""
    module = ModuleType(name)
    module.__dict__["__getattr__"] = lambda wanted: type(wanted, (_Anything,), {})
    return module


def _execute(
    name: str,
    source: bytes,
    file: str,
    known: Mapping[str, ModuleType],
    module: ModuleType | None = None,
) -> ModuleType:
    """Execute the file as a module; of vLLM and torch it gets what is known, else stand-ins."""
    module = module or ModuleType(name)
    package = name.rpartition(".")[0]

    def import_(
        wanted: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level:
            base = package.split(".")
            wanted = ".".join([*base[: len(base) - level + 1], *filter(None, [wanted])])
        if level or wanted.partition(".")[0] in {"vllm", "torch"}:
            return known.get(wanted) or _stand_in(wanted)
        return builtins.__import__(wanted, globals, locals, fromlist or (), 0)

    own = {**vars(builtins), "__import__": import_}
    module.__dict__.update(__file__=file, __package__=package, __builtins__=own)
    code = compile(source, file, "exec", dont_inherit=True)
    hidden = f"{name} of a release"
    module.__dict__["__name__"] = hidden
    sys.modules[hidden] = module  # `dataclasses` and `typing` look for it there
    try:
        exec(code, module.__dict__)
    finally:
        del sys.modules[hidden]
    return module


def _cut(source: bytes, classes: set[str], variables: set[str]) -> bytes:
    """Of a file of many things: its imports of no other packages, these classes and variables."""
    head = (
        "from __future__ import annotations\nimport cachetools\n"
        "from collections import UserDict\n"
        "from collections.abc import Callable, Hashable, Iterator, KeysView, Mapping\n"
        "from types import MappingProxyType\n"
        "from typing import Any, Generic, NamedTuple, Optional, TypeVar, Union, cast, overload\n"
    )
    kept = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name in classes:
            kept.append(ast.unparse(node))
        elif isinstance(node, ast.Assign):
            names = {t.id for t in node.targets if isinstance(t, ast.Name)}
            if names & variables:
                kept.append(ast.unparse(node))
    return (head + "\n".join(kept)).encode()


def _functions(source: bytes) -> list[ast.Module]:
    """The procedures of the file, as functions, without annotations; line numbers stay."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name in _PROCEDURES:
            node.returns = None
            node.decorator_list = []
            for argument in node.args.args:
                argument.annotation = None
            future = ast.parse("from __future__ import annotations").body
            module = ast.Module([*future, *_without_annotations(node)], [])
            found.append(ast.fix_missing_locations(module))
    return found


class _Bare(ast.NodeTransformer):
    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`defaultdict[str, int]` is `defaultdict`."""
        if isinstance(node.value, ast.Name) and node.value.id == "defaultdict":
            return node.value
        self.generic_visit(node)
        return node


def _without_annotations(node: ast.FunctionDef) -> list[ast.stmt]:
    return [_Bare().visit(node)]
