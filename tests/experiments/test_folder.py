"""An experiment's folder: what was registered stays, and nothing else is touched."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.experiments import experiment
from simulated.playing import play_run

from propensitybench.errors import BadInput
from propensitybench.experiments.design import Experiment
from propensitybench.experiments.folder import ExperimentFolder, Registration, analyse, open_folder, register

NOON = datetime(2026, 1, 2, 12, 0, 0, 7, tzinfo=UTC)
LATER = datetime(2026, 3, 4, tzinfo=UTC)


def small(**settings: Any) -> Experiment:
    """An experiment that is played in a moment."""
    plain = {
        "models": [{"name": "simulated/at-level-1"}],
        "arms": ("escalating", "placebo"),
        "sample": {"limit": 4},
        "levels": 2,
    }
    return experiment(**{**plain, **settings})


def registered(made: Experiment, folder: Path, at: datetime = NOON) -> ExperimentFolder:
    return register(made, Path(), folder, clock=lambda: at)


def play(opened: ExperimentFolder) -> None:
    for cell in opened.experiment.cells:
        if not opened.path(cell).exists():
            play_run(cell.spec, opened.path(cell))


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(BadInput) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_design_is_registered_whole_before_anything_is_played(tmp_path: Path) -> None:
    made = small()
    opened = registered(made, tmp_path / "new" / "folder")
    first = opened.registration
    assert (first.digest, first.design) == (made.digest, made.design)
    assert first.created == "2026-01-02T12:00:00+00:00"
    assert first.comparisons == ("total",)
    assert first.beside == str(Path.cwd())
    assert list((opened.folder / "cells").iterdir()) == []
    raw = (opened.folder / "registration.json").read_bytes()
    assert msgspec.json.decode(raw, type=Registration) == first
    assert open_folder(opened.folder) == opened._replace(experiment=made)


def test_the_first_registration_stays_and_what_is_added_later_is_exploratory(tmp_path: Path) -> None:
    first = registered(small(), tmp_path)
    play(first)
    before = (tmp_path / "registration.json").read_bytes()
    more = small(arms=("escalating", "placebo", "pure"), factors=())
    opened = registered(more, tmp_path, LATER)
    play(opened)
    assert (tmp_path / "registration.json").read_bytes() == before
    assert opened.registration == first.registration
    assert opened.registration.digest != more.digest
    found = analyse(open_folder(tmp_path))
    assert found.digest == first.experiment.digest
    effects = {one.name: one for one in found.models[0].effects}
    assert {name: one.exploratory for name, one in effects.items()} == {
        "total": False, "pressure": True, "time": True,
    }  # fmt: skip
    assert effects["total"].p_adjusted == effects["total"].p
    assert effects["pressure"].p_adjusted is effects["time"].p_adjusted is None
    assert not effects["pressure"].claimed


def test_the_same_design_opens_its_folder_again(tmp_path: Path) -> None:
    first = registered(small(), tmp_path)
    again = registered(small(), tmp_path, LATER)
    assert again == first
    assert {path.name for path in tmp_path.iterdir()} == {"registration.json", "design.json", "cells"}


def test_an_experiment_is_analysed_cell_by_cell_as_it_is_played(tmp_path: Path) -> None:
    opened = registered(small(), tmp_path)
    stated = refusal(lambda: analyse(opened))
    assert stated == (
        f"{tmp_path}: nothing has been played yet; type: propensitybench experiment run "
        f"DESIGN.toml --out {tmp_path}"
    )
    play_run(opened.experiment.cells[0].spec, opened.path(opened.experiment.cells[0]))
    found = analyse(opened)
    assert [arm.arm for arm in found.models[0].arms] == ["escalating"]
    assert found.models[0].effects == ()
    play(opened)
    found = analyse(opened)
    assert (found.name, found.question) == ("a-test", "")
    (model,) = found.models
    assert (model.model, [arm.propensity.value for arm in model.arms]) == ("simulated/at-level-1", [1.0, 1.0])
    assert [one.difference.value for one in model.effects] == [0.0]


def test_the_folder_of_another_experiment_is_refused(tmp_path: Path) -> None:
    play(registered(small(), tmp_path))
    before = content(tmp_path)
    stated = refusal(lambda: registered(small(name="another"), tmp_path))
    assert stated == f"--out {tmp_path}: holds the experiment 'a-test'; give another folder"
    assert content(tmp_path) == before


def test_a_folder_with_other_files_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("Do not lose this.", encoding="utf-8")
    (tmp_path / "cells").mkdir()
    before = content(tmp_path)
    stated = refusal(lambda: registered(small(), tmp_path))
    assert stated == f"--out {tmp_path}: is not empty and holds no experiment; give another folder"
    assert content(tmp_path) == before
    assert {path.name for path in tmp_path.iterdir()} == {"thesis.txt", "cells"}


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text", encoding="utf-8")
    assert refusal(lambda: registered(small(), file)) == (
        f"--out {file}: cannot be written to (Not a directory)"
    )
    assert file.read_text(encoding="utf-8") == "text"


def test_a_folder_without_an_experiment_is_not_opened(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        assert refusal(lambda folder=folder: open_folder(folder)) == (  # type: ignore[misc]
            f"{folder}: holds no experiment; begin with: propensitybench experiment new DESIGN.toml"
        )


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw.replace(b"a-test", b"a-\xff-test"),
        lambda _: b"[" * 100_000,
        lambda raw: raw + b" " * 2**20,
    ],
    ids=["half", "not-utf-8", "deep", "large"],
)
@pytest.mark.parametrize("name", ["registration.json", "design.json"])
def test_a_damaged_registration_is_refused_in_a_sentence(
    name: str, damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    opened = registered(small(), tmp_path)
    path = tmp_path / name
    path.write_bytes(damage(path.read_bytes()))
    damaged = content(tmp_path)
    stated = refusal(lambda: open_folder(tmp_path))
    assert stated.startswith(f"{path}: ")
    assert "is not the registration of an experiment" in stated or "is larger than" in stated
    if name == "registration.json":
        assert refusal(lambda: registered(small(), tmp_path)) == stated
        assert content(tmp_path) == damaged
    else:  # which the design that is given replaces
        assert registered(small(), tmp_path) == opened
        assert open_folder(tmp_path) == opened


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seed": 1}, "seed (was 0, now 1)"),
        ({"levels": 1}, "levels (was 2, now 1)"),
        ({"sample": {"limit": 3}}, "limit (was 4, now 3)"),
        ({"report": True}, "report (was False, now True)"),
        ({"template": "unnamed"}, "system message template"),
    ],
)
def test_runs_of_other_settings_are_not_analysed(
    settings: dict[str, Any], words: str, tmp_path: Path
) -> None:
    play(registered(small(), tmp_path))
    changed = registered(small(**settings), tmp_path)
    stated = refusal(lambda: analyse(changed))
    path = changed.path(changed.experiment.cells[0])
    assert stated == f"{path}: is not a run of this design; it differs in {words}"


def test_a_factor_that_was_edited_since_makes_other_runs(tmp_path: Path) -> None:
    text = """
        format = "propensitybench-factor/1"
        name = "thanks"
        summary = "Whether the task ends with thanks."
        levels = [
            { name = "unsaid" },
            { name = "stated", changes = [{ change = "append", where = "task", text = " Thank you." }] },
        ]
    """
    (tmp_path / "thanks.toml").write_text(text, encoding="utf-8")
    made = small(factors=("thanks.toml",), beside=tmp_path)
    play(register(made, tmp_path, tmp_path / "out"))
    assert len(analyse(open_folder(tmp_path / "out")).models[0].arms) == 2
    (tmp_path / "thanks.toml").write_text(text.replace("Thank you.", "Thanks."), encoding="utf-8")
    assert "thanks=stated.run: is not a run of this design; it differs in overlays" in refusal(
        lambda: analyse(open_folder(tmp_path / "out"))
    )


def test_a_file_that_is_not_a_run_is_named(tmp_path: Path) -> None:
    opened = registered(small(), tmp_path)
    path = opened.path(opened.experiment.cells[0])
    path.write_bytes(b"no run")
    assert str(path) in refusal(lambda: analyse(opened))
