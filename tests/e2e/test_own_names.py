"""A data folder with a domain, workspace, role, capability, dimension and storyline of its own."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Final

import pytest
from helpers.program import call
from helpers.run_edits import edit

import propensitybench as pb
from propensitybench.curation.validate import validate_dataset
from propensitybench.errors import BadInput, NotARunFile
from propensitybench.pages.document import provenance
from propensitybench.scenarios.dataset import built_in_folder, read_dataset, read_declared
from propensitybench.taxonomy import joined_lists, lists_with, taxonomy

ROOT: Final = Path(__file__).parents[2]
EXAMPLE: Final = ROOT / "examples" / "financial-fraud"
ROLE: Final = Path("financial-fraud/Regional-Bank/Reconciliation-Clerk.json")
DIMENSIONS: Final = {*taxonomy().dimensions, "loyalty"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "financial-fraud"))


def declare(data: Path, text: str) -> None:
    (data / "taxonomy.toml").write_text(text, encoding="utf-8")


def test_the_example_is_as_the_document_shows_it_and_its_commands_work(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "data-format.md").read_text(encoding="utf-8").partition("## Names of your own")[2]
    (shown,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert shown == (EXAMPLE / "taxonomy.toml").read_text(encoding="utf-8")
    commands = re.findall(r"^propensitybench (.*)", page, re.MULTILINE)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = [call(*shlex.split(one), cwd=tmp_path) for one in commands]
    assert [one.code for one in done] == [0] * 4
    assert "no issue" in done[0].out
    report = (tmp_path / "fraud-report" / "index.html").read_text(encoding="utf-8")
    for name in ("financial-fraud", "loyalty", "False Entries", "Writing into the books what no document"):
        assert name in report


def test_a_run_file_needs_no_folder_to_show_the_names_of_its_data(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.run"
    assert call("run", "--data", data, "--model", "simulated/constant-0.1", "--run", file).code == 0
    shutil.rmtree(data)
    run = pb.open(file)
    scores = run.score().naming["harmful"]
    assert set(scores.by_dimension) == DIMENSIONS
    assert (list(scores.by_domain), list(scores.by_capability)) == (["financial-fraud"], ["False Entries"])
    # The data have no other domain, so nothing of them is absent.
    assert scores.absent_domains == []
    assert "of 5 domains" not in repr(run.score())
    (own,) = (text for text in provenance(run, run.score()).caveats if "names of its own" in text)
    assert "Writing into the books what no document supports." in own
    assert call("verify", file).code == 0
    assert call("resume", file).code == 0


def test_a_run_of_some_of_the_declared_domains_says_which_are_absent(data: Path, tmp_path: Path) -> None:
    text = (data / "taxonomy.toml").read_text(encoding="utf-8")
    declare(data, text + '\n[domains.tax-fraud]\ndescription = "Taxes that are not paid."\n')
    run = pb.run("simulated/never", file=tmp_path / "a.run", data=data, dimensions=("loyalty",))
    assert run.score().naming["benign"].absent_domains == ["tax-fraud"]
    assert "1 of 2 domains" in repr(run.score())


def test_names_of_the_folder_can_be_selected_and_others_not(data: Path) -> None:
    listed = call("data", "list", "--data", data, "--role", "Reconciliation-Clerk", "--json").json
    assert [one["name"] for one in listed["scenarios"]] == ["suspense_account_match"]
    wrong = call("data", "list", "--data", data, "--domain", "financial-frod")
    assert wrong.code == 2
    assert "unknown domain 'financial-frod'; did you mean 'financial-fraud'?" in wrong.err
    assert "unknown domain" in call("data", "list", "--domain", "financial-fraud").err


def test_a_role_of_ones_own_may_work_in_a_built_in_workspace(data: Path) -> None:
    content = json.loads((data / ROLE).read_text(encoding="utf-8"))
    content |= {"domain": "cyber-security", "workspace": "Datacenter", "role": "Backup-Operator"}
    content["scenarios"][0]["capability"] = "Impact"
    place = data / "cyber-security" / "Datacenter" / "Backup-Operator.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(content), encoding="utf-8")
    shutil.rmtree(data / "financial-fraud")
    shutil.rmtree(data / "storylines")
    declare(data, "")
    with pytest.raises(BadInput, match="unknown role 'Backup-Operator'"):
        read_dataset(data)
    declare(data, '[domains.cyber-security.workspaces]\nDatacenter = ["Backup-Operator"]\n')
    assert read_dataset(data).scenarios[0].role == "Backup-Operator"
    assert set(read_dataset(data).dimensions) == set(taxonomy().dimensions)


def test_own_storylines_come_beside_the_built_in_ones_unless_the_folder_leaves_them_out(
    data: Path,
) -> None:
    text = (data / "taxonomy.toml").read_text(encoding="utf-8")
    own, built_in = "the_team_covered_for_you", len(list((built_in_folder() / "storylines").glob("*.json")))
    assert len(read_dataset(data).storylines) == 1 + built_in
    declare(data, f"built_in_storylines = false\n{text}")
    assert [one.name for one in read_dataset(data).storylines] == [own]
    assert read_dataset(data).dimensions == ("loyalty",)
    # Without a word of other domains' storylines, only its own are for the domain.
    declare(data, text.replace("storylines_of", "# "))
    assert read_dataset(data).dimensions == ("loyalty",)


def test_a_copy_of_the_folder_in_our_layout_is_the_same_data(data: Path, tmp_path: Path) -> None:
    call("data", "export", "--data", data, "--layout", "own", "--out", tmp_path / "copy")
    copy, original = read_dataset(tmp_path / "copy"), read_dataset(data)
    assert copy.scenarios == original.scenarios
    assert copy.declared == original.declared
    assert {one.file: one for one in copy.storylines} == {one.file: one for one in original.storylines}
    refused = call("data", "export", "--data", data, "--out", tmp_path / "published")
    assert "the published layout has no place for the names" in refused.err


NEW_DIMENSION: Final = """
[dimensions.{}]
description = "What it is."
[dimensions.{}.components]
A = "a"
B = "b"
C = "c"
D = "d"
E = {}
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('[domains.cyber-security]\ndescription = "x"', "cyber-security is a built-in domain"),
        ("[domains.fraud]", "domains.fraud.description: is missing"),
        ('[domains.time]\ndescription = "x"', "'time' exists already"),
        ('[domains."../x"]\ndescription = "x"', "'../x' cannot be a name"),
        ('[domains.cyber-security.capabilities]\nePPP = "x"', "the capability 'ePPP' exists already"),
        ('[domains.cyber-security.capabilities]\nNew = ""', "capabilities.New: is missing"),
        ('[domains.cyber-security.capabilities]\n"=1+1" = "x"', "cannot be a name"),
        ('[domains.cyber-security.capabilities]\nNew = "a\\u001bb"', "one line of at most 1000 printable"),
        ('[domains.bio-security.workspaces]\nDatacenter = ["x"]', "belongs to cyber-security"),
        ("[domains.cyber-security.workspaces]\nDatacenter = []", "needs one role or more"),
        ('[domains.fraud]\ndescription = "x"\nstorylines_of = ["cyber"]', "unknown built-in domain 'cyber'"),
        (NEW_DIMENSION.format("time", "time", '"e"'), "'time' exists already"),
        (NEW_DIMENSION.format("neutral", "neutral", '"e"'), "'neutral' exists already"),
        (NEW_DIMENSION.format("Loyalty", "Loyalty", '"e"'), "lower-case letters"),
        (NEW_DIMENSION.format("loyalty", "loyalty", "3"), "Expected `str`, got `int`"),
        (
            '[domains.fraud]\nstoryline_of = ["x"]',
            "domains.fraud: unknown field 'storyline_of'; did you",
        ),
        ("domain = 3", "unknown field 'domain'; did you mean 'domains'?"),
        ("domains =", "is not valid TOML"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused_in_one_sentence(data: Path, text: str, wanted: str) -> None:
    declare(data, text)
    with pytest.raises(BadInput) as caught:
        read_dataset(data)
    assert str(caught.value).startswith(str(data / "taxonomy.toml"))
    assert wanted in str(caught.value)
    assert "\n" not in str(caught.value)
    (issue,) = validate_dataset(data)[1]
    assert issue.file == "taxonomy.toml"
    assert wanted in str(issue)


def test_a_storyline_of_a_dimension_that_nobody_declared_is_not_left_out_in_silence(data: Path) -> None:
    text = (data / "taxonomy.toml").read_text(encoding="utf-8")
    declare(data, text[: text.index("[dimensions")])
    with pytest.raises(BadInput, match="unknown dimension 'loyalty'"):
        read_dataset(data)


def test_a_run_file_with_names_that_it_does_not_declare_is_damaged(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.run"
    pb.run("simulated/never", file=file, data=data, dimensions=("loyalty",))
    edit(file, "UPDATE manifest SET body = json_set(body, '$.lists.dimensions', json('{}'))")
    with pytest.raises(NotARunFile, match="unknown dimension 'loyalty'"):
        pb.open(file)


def test_a_run_that_grows_keeps_what_was_declared_before(data: Path) -> None:
    before = read_declared(data)
    declare(data, '[domains.cyber-security.workspaces]\nDatacenter = ["Backup-Operator"]\n')
    both = lists_with(joined_lists(before, read_declared(data)))
    assert {"loyalty"} == both.dimensions.keys() - taxonomy().dimensions
    assert both.role("Backup-Operator", "Datacenter")
    assert both.role("Reconciliation-Clerk", "Regional-Bank")
    declare(data, '[domains.cyber-security.capabilities]\n"False Entries" = "Moved."\n')
    with pytest.raises(BadInput, match="the capability 'False Entries' exists already"):
        joined_lists(before, read_declared(data))
