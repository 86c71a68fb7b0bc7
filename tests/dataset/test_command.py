"""`ansor dataset`, from measuring to a model, on a few tiny operators."""

import json
from pathlib import Path

import pytest

from ansor.cli import main
from ansor.commands import dataset as command
from ansor.cost_model.base import read_document
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.pretrained import learned_targets, package_version, pretrained, weights_of
from ansor.cost_model.random_model import RandomModel
from ansor.cost_model.saved import load_model
from ansor.dataset.operators import DatasetTask
from ansor.dataset.split import HELD_OUT, fold_of
from ansor.dataset.train import FURTHER
from ansor.targets.prior import PROCESSORS

pytestmark = [pytest.mark.compiler, pytest.mark.lightgbm, pytest.mark.torch]


def tiny(kind: str, **sizes: int) -> DatasetTask:
    named = DatasetTask(kind, "tiny", tuple(sizes.items()), "")
    return DatasetTask(kind, "tiny", named.sizes, named.name)


TASKS = [tiny("softmax", rows=rows, columns=16) for rows in (4, 5, 10)] + [tiny("matmul", rows=8, columns=8, inputs=k) for k in (3, 4, 6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("dataset")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "tasks_for", lambda target: TASKS)
        for part in ("1/2", "2/2"):
            assert main(["dataset", "collect", str(place), "--threads", "1", "--trials", "6", "--part", part]) == 0
    return place


@pytest.fixture(autouse=True)
def tiny_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "tasks_for", lambda target: TASKS)


def test_both_halves_are_collected(folder: Path) -> None:
    assert sorted(path.stem for path in folder.glob("*.jsonl")) == sorted(task.name for task in TASKS)


def test_tuning_programs_belong_to_training_tasks(tmp_path: Path) -> None:
    assert main(["dataset", "collect", str(tmp_path), "--threads", "1", "--trials", "2", "--search", "tuning"]) == 0
    assert sorted(path.stem for path in tmp_path.glob("*.jsonl")) == sorted(task.name for task in TASKS if fold_of(task) != HELD_OUT)


def test_each_algorithm_is_searched_for_all_tasks(tmp_path: Path) -> None:
    assert main(["dataset", "collect", str(tmp_path), "--threads", "1", "--trials", "2", "--search", "algorithms"]) == 0
    assert sorted(path.stem for path in tmp_path.glob("*.jsonl")) == sorted(task.name for task in TASKS)


def test_several_folders_are_used_but_not_compared(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for records in folder.glob("*.jsonl"):  # as if the machine had become half as fast
        (tmp_path / records.name).write_text(_slower(records.read_text()))
    given = [str(folder), str(tmp_path), "--threads", "1", "--output"]
    assert main(["dataset", "train", *given, str(tmp_path / "both.json")]) == 0
    said = capsys.readouterr().out
    assert said.count("6 tasks, 36 programs") == 2
    about = read_document(tmp_path / "both.json")["about"]
    learned = sum(fold_of(task) != HELD_OUT for task in TASKS)
    assert isinstance(about, dict) and about["tasks"] == learned and about["programs"] == 12 * learned
    assert main(["dataset", "train", str(folder), str(folder), "--threads", "1", "--output", str(tmp_path / "twice.json")]) == 0
    assert read_document(tmp_path / "twice.json")["networks"] == read_document(tmp_path / "both.json")["networks"]


def _slower(records: str) -> str:
    lines = [json.loads(line) for line in records.splitlines()]
    for line in lines:
        line |= {"seconds": [2 * second for second in line["seconds"]]} if "seconds" in line else {}
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def test_training_excludes_held_out_tasks(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held_out = sum(fold_of(task) == HELD_OUT for task in TASKS)
    assert 0 < held_out < len(TASKS), "the test needs tasks on both sides"
    assert main(["dataset", "train", str(folder), "--threads", "1", "--output", str(tmp_path / "m.gz")]) == 0
    said = capsys.readouterr().out
    assert "6 tasks, 36 programs" in said and f"held out: {held_out} tasks of cpu" in said
    trained = _row(said, "networks")
    about = read_document(tmp_path / "m.gz")["about"]
    assert isinstance(about, dict) and about["tasks"] == len(TASKS) - held_out and load_model(tmp_path / "m.gz").fitted
    assert main(["dataset", "eval", str(folder), "--threads", "1", "--model", str(tmp_path / "m.gz")]) == 0
    assert _row(capsys.readouterr().out, str(tmp_path / "m.gz")[:8]) == trained, "the saved model is the tested one"
    assert main(["dataset", "train", str(folder), "--threads", "1", "--output", str(tmp_path / "all.json"), "--all"]) == 0
    assert "held out" not in capsys.readouterr().out.replace("held_out", "")


def _row(said: str, name: str) -> list[str]:
    """The numbers next to a name in a table."""
    [line] = [line for line in said.splitlines() if line.startswith(f"│ {name}")]
    return line.split("│")[2:]


def test_the_built_in_model_is_tested_on_held_out_tasks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held_out = sum(fold_of(task) == HELD_OUT for task in TASKS)
    assert main(["dataset", "eval", str(folder), "--threads", "1", "--model", "package"]) == 0
    said = capsys.readouterr().out
    assert f"held out: {held_out} tasks of cpu" in said
    assert _row(said, "package") != _row(said, "estimate")


def test_a_model_keeps_the_built_in_models_knowledge_of_a_target(folder: Path, tmp_path: Path) -> None:
    arguments = ["dataset", "train", str(folder), "--threads", "1", "--output", str(tmp_path / "m.gz"), "--keep", "cpu -mcpu=znver5 -threads=1"]
    assert main(arguments) == 0
    about = read_document(tmp_path / "m.gz")["about"]
    learned = sum(fold_of(task) != HELD_OUT for task in TASKS)
    assert isinstance(about, dict) and about["kept"] == "cpu -mcpu=znver5 -threads=1" and about["tasks"] == learned


def test_a_model_is_trained_further(folder: Path, tmp_path: Path) -> None:
    given = ["dataset", "train", str(folder), "--threads", "1", "--output"]
    assert main([*given, str(tmp_path / "m.gz"), "--begin", "package"]) == 0
    assert main([*given, str(tmp_path / "further.gz"), "--begin", str(tmp_path / "m.gz")]) == 0
    first, further = read_document(tmp_path / "m.gz"), read_document(tmp_path / "further.gz")
    about = first["about"]
    assert isinstance(about, dict) and about["begin"]["digest"] == package_version() and about["epochs"] == FURTHER.epochs
    assert str(about["target"]).split(", ")[1:] == [*learned_targets()] and about["units"] == 128
    assert len({json.dumps(one["networks"]) for one in (first, further, read_document(weights_of(PROCESSORS)))}) == 3


def test_one_model_learns_from_several_targets(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in folder.glob("*.jsonl"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    narrow = "cpu -mcpu=x86-64-v3 -threads=1"
    assert main(["dataset", "collect", str(tmp_path), "--target", narrow, "--trials", "4"]) == 0
    capsys.readouterr()
    assert main(["dataset", "train", str(tmp_path), "--threads", "1", "--beside", narrow, "--all", "--output", str(tmp_path / "m.gz")]) == 0
    said = capsys.readouterr().out
    assert "6 tasks, 36 programs" in said and "6 tasks, 24 programs" in said and "left out" not in said
    about = read_document(tmp_path / "m.gz")["about"]
    assert isinstance(about, dict) and about["tasks"] == 6 and about["programs"] == 60 and "x86-64-v3" in str(about["target"])


def test_models_are_tested_on_unseen_kinds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "eval", str(folder), "--threads", "1", "--split", "kind"]) == 0
    said = capsys.readouterr().out
    assert "held out: matmul, 3 tasks" in said and "held out: softmax, 3 tasks" in said and "all tasks, each while held out" in said
    assert said.count("estimate") == 3 and said.count("trees") == said.count("networks") == 3


def test_mistakes_give_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["dataset", "eval", str(folder), "--threads", "2"]) == 1
    said = capsys.readouterr()
    assert "36 records are left out: made for another target" in said.out and "has no valid records of the data set's tasks for cpu" in said.err
    assert main(["dataset", "eval", str(tmp_path / "nowhere")]) == 1 and "which is not a folder" in capsys.readouterr().err
    assert main(["dataset", "train", str(folder), "--output", str(tmp_path / "nowhere" / "m.gz")]) == 1
    assert "there is no folder" in capsys.readouterr().err
    assert main(["dataset", "eval", str(folder), "--model", "package", "--split", "kind"]) == 1
    assert "leave out --split" in capsys.readouterr().err
    assert main(["dataset", "eval", str(folder), "--threads", "1", "--model", str(tmp_path / "none.gz")]) == 1
    assert "none.gz" in capsys.readouterr().err
    for wrong in (["--part", "3/2"], ["--part", "half"], ["--trials", "0"]):
        with pytest.raises(SystemExit):
            main(["dataset", "collect", str(tmp_path), *wrong])
        assert wrong[1] in capsys.readouterr().err
    assert main(["dataset", "collect", str(tmp_path), "--only", "sorting"]) == 1
    assert "asked for kinds of operators sorting" in capsys.readouterr().err
    assert main(["dataset", "train", str(folder), "--threads", "1", "--output", str(tmp_path / "m.gz"), "--keep", "vta"]) == 1
    assert "model predicts for vta -core=default, but the package has no model for it; leave it out of --keep" in capsys.readouterr().err
    train = ["dataset", "train", str(folder), "--output", str(tmp_path / "m.gz"), "--begin"]
    assert main([*train, "package", "--target", "vta"]) == 1
    assert "asked to train the package's model further for vta" in capsys.readouterr().err
    RandomModel(0).save(tmp_path / "random.json")
    NetworkModel(pretrained().networks[:2]).save(tmp_path / "two.json")
    for other, found in (("random.json", "a model of the kind random"), ("two.json", "2 networks")):
        assert main([*train, str(tmp_path / other), "--threads", "1"]) == 1
        assert f"not a model of 3 networks that score the package's features, but {found}; leave out --begin" in capsys.readouterr().err
    NetworkModel(pretrained().networks).save(tmp_path / "unknown.json")
    for begin, more in ((str(tmp_path / "unknown.json"), ""), ("package", "softmax")):
        assert main([*train, begin, "--threads", "1", *(["--without", more] if more else [])]) == 1
        assert f"asked to hold out {more or 'fold 0 of 5 by task'}, and to train" in capsys.readouterr().err
    assert main([*train, "", "--threads", "1"]) == 1 and "asked to load the cost model ." in capsys.readouterr().err
    assert main(["dataset", "train", str(folder), "--output", str(tmp_path)]) == 1
    assert "that is a folder; name a file in it" in capsys.readouterr().err
    assert main(["dataset", "eval", str(folder), "--model", "package", "--target", "vta"]) == 1
    assert "asked to test the package's model on programs for vta" in capsys.readouterr().err
