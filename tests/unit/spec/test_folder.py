"""Generated files: nothing that is somebody else's is deleted, overwritten, or written outside."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from mmcache_spec.cli.app import cli
from mmcache_spec.generate.folder import ForeignFile, drift, write_folder

OLD, NEW = b"ours, old", b"ours, new"


def ours(content: bytes) -> bool:
    return content.startswith(b"ours")


def content(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_what_is_not_generated_any_more_goes(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    write_folder(folder, {"a": OLD, "b": OLD}, ours)
    write_folder(folder, {"b": NEW, "c": NEW}, ours)
    assert content(folder) == {"b": NEW, "c": NEW}


@pytest.mark.parametrize("name", ["package.json", "b", ".hidden"])
def test_beside_a_foreign_file_nothing_changes(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_bytes(OLD)
    (tmp_path / name).write_bytes(b"theirs")
    before = content(tmp_path)
    with pytest.raises(ForeignFile, match="nothing is changed"):
        write_folder(tmp_path, {"b": NEW}, ours)
    assert content(tmp_path) == before


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    folder.mkdir()
    outside.write_bytes(OLD)
    (folder / "a").symlink_to(outside)
    with pytest.raises(ForeignFile):
        write_folder(folder, {"a": NEW}, ours)
    assert outside.read_bytes() == OLD


def test_a_file_that_cannot_be_finished_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_bytes(OLD)
    monkeypatch.setattr("mmcache_vectors.document.os.replace", full)
    with pytest.raises(OSError, match="No space"):
        write_folder(tmp_path, {"a": NEW}, ours)
    assert content(tmp_path) == {"a": OLD}


def test_drift_names_each_file(tmp_path: Path) -> None:
    write_folder(tmp_path, {"a": OLD, "b": OLD, "c": OLD}, ours)
    said = list(drift(tmp_path, {"a": OLD, "b": NEW, "d": NEW}))
    assert said == [
        f"{tmp_path / 'b'} differs",
        f"{tmp_path / 'c'} is not generated any more",
        f"{tmp_path / 'd'} is missing",
    ]


def test_obligations_refuses_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    done = CliRunner().invoke(
        cli, ["obligations", "--out", str(tmp_path), "encoder_decoder_repeated_credit"]
    )
    assert done.exit_code == 2
    assert "package.json is not a file that this command writes" in done.output
    assert list(tmp_path.iterdir()) == [tmp_path / "package.json"]


def test_obligations_are_written_again_over_themselves(tmp_path: Path) -> None:
    arguments = ["obligations", "--out", str(tmp_path), "encoder_decoder_repeated_credit"]
    for _ in range(2):
        assert CliRunner().invoke(cli, arguments).exit_code == 0
    assert all(p.suffix == ".smt2" for p in tmp_path.iterdir())
