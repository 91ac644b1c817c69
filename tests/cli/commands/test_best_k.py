import re
from pathlib import Path

import numpy as np
import pytest

from ebql.cli import main
from ebql.cli.commands.best_k import read_arms
from ebql.estimators import exact_moments, optimal_ensemble_size, single_moments


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")

    def command(*arguments: object) -> tuple[int, str, str]:
        code = main(["best-k", *map(str, arguments)])
        output = capsys.readouterr()
        return code, output.out, output.err

    return command


def csv_file(folder: Path, text: str) -> Path:
    path = folder / "samples.csv"
    path.write_text(text)
    return path


def test_theory_prints_bias_sd_and_rmse_of_the_three_estimators(run):
    means, stds, n = [1.0, 0.8, 0.5], 0.5, 100
    code, out, _ = run("--means", *means, "--stds", stds, "--samples", n)
    assert code == 0
    for moments, name in (
        (single_moments(means, stds, n), "single"),
        (exact_moments(means, stds, n, 50), "double"),
    ):
        row = next(line for line in out.splitlines() if name in line)
        for number in (moments.bias, moments.variance**0.5, moments.mse**0.5):
            assert f"{number:.4g}" in row
    assert f"ensemble, K = {optimal_ensemble_size(means, stds, n)}" in out
    assert "Use: single (least RMSE)" in out


def test_theory_recommends_a_large_ensemble_when_the_arms_are_alike(run):
    code, out, _ = run("--means", 0, 0, 0, 0, "--samples", 50)
    assert code == 0
    assert "Use: ensemble, K = 50 (least RMSE)" in out


def test_negative_means_are_numbers_not_options(run):
    assert run("--means", "-1.0", "-0.5", "--samples", 10)[0] == 0


def test_a_file_gives_a_corrected_estimate_of_the_winner(run, tmp_path):
    samples = np.random.default_rng(0).normal(size=(60, 5))
    names = ["control", "B [red]", "C", "D", "E"]
    rows = [",".join(names), *(",".join(map(str, row)) for row in samples)]
    code, out, _ = run("--csv", csv_file(tmp_path, "\n".join(rows)))
    assert code == 0
    assert all(name in out for name in names)
    naive, corrected = (
        float(re.search(rf"{label}[^│]*│ +(\S+)", out).group(1)) for label in ("naive ", "corrected,")
    )
    assert naive == pytest.approx(samples.mean(axis=0).max(), rel=1e-4)
    assert corrected < naive
    again = run("--csv", tmp_path / "samples.csv")[1]
    assert again == out
    assert run("--csv", tmp_path / "samples.csv", "--seed", 1)[1] != out


def test_columns_may_be_unnamed_unequal_and_padded(tmp_path):
    path = csv_file(tmp_path, "1, 2,\n3,4,\n\n,5,\n")
    assert read_arms(path) == ([("arm 1", [1.0, 3.0]), ("arm 2", [2.0, 4.0, 5.0])], False)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffold,new\n1,2\n3,4\n",
        "old;new\n1;2\n3;4\n",
        "old\tnew\r\n1\t2\r\n3\t4\r\n",
        "\n , \nold,new\n\n1,2\n3,4\n",
        '"old","new"\n"1","2"\n3,4\n',
    ],
)
def test_the_delimiter_is_found_and_blank_rows_are_skipped(tmp_path, text):
    assert read_arms(csv_file(tmp_path, text)) == ([("old", [1.0, 3.0]), ("new", [2.0, 4.0])], True)


def test_a_name_may_contain_another_delimiter(tmp_path):
    named = csv_file(tmp_path, "price; EUR,size\n1,2\n3,4\n")
    assert [arm.name for arm in read_arms(named).arms] == ["price; EUR", "size"]


def test_the_output_says_what_was_read_and_whether_there_was_a_header(run, tmp_path):
    named = run("--csv", csv_file(tmp_path, "a,b\n1,2\n3,4\n5,\n"), "--splits", 2)[1]
    assert "Read 5 samples of 2 arms." in named
    assert "No header found" not in named
    unnamed = run("--csv", csv_file(tmp_path, "1,2\n1,2\n3,4\n"), "--splits", 2)[1]
    assert "Read 6 samples of 2 arms. No header found" in unnamed


def table_row(out: str, label: str) -> list[str]:
    return next(
        [cell.strip() for cell in line.split("│")[2:-1]] for line in out.splitlines() if f"│ {label}" in line
    )


@pytest.mark.parametrize(
    ("gap", "advice"), [(0.0, "Use: corrected"), (1.5, "Use: naive"), (1.5, "must not overestimate")]
)
def test_the_advice_follows_the_expected_errors_in_the_table(run, tmp_path, gap, advice):
    samples = np.random.default_rng(1).normal(size=(40, 6))
    samples += [gap, 0, 0, 0, 0, 0] - samples.mean(axis=0)
    np.savetxt(tmp_path / "samples.csv", samples, delimiter=",")
    code, out, _ = run("--csv", tmp_path / "samples.csv", "--splits", 5)
    assert code == 0
    assert advice in out
    naive, corrected = table_row(out, "naive"), table_row(out, "corrected")
    assert float(naive[2]) > 0 >= float(corrected[2])
    assert (float(naive[3]) < float(corrected[3])) == ("Use: naive" in out)
    assert f"the best arm is worth about {corrected[0]}" in out


def test_an_ensemble_of_two_is_shown_with_the_same_numbers_as_the_double(run, tmp_path):
    code, out, _ = run("--csv", csv_file(tmp_path, "1,2\n3,7\n"))
    assert code == 0
    assert table_row(out, "double, K = 2") == table_row(out, "corrected, K = 2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,x\n", "Not a number at line 3, column 2 (b): 'x'."),
        ("1,2\n3,4;5\n", "Not a number at line 2, column 2 (arm 2): '4;5'."),
        ("1,b\n1,2\n3,4\n", "Not a number at line 1, column 2 (arm 2): 'b'."),
        ('a,b\n\n"1\n",2\n3,x\n', "Not a number at line 5, column 2 (b): 'x'."),
        ('"a\nb",c\nx,2\n', "Not a number at line 3, column 1 (a b): 'x'."),
        ("a,b\n1,2\n1_000,2\n", "Not a number at line 3, column 1 (a): '1_000'."),
        ("a;b\n1,5;2\n", "Not a number at line 2, column 1 (a): '1,5'. Decimals need a point."),
        ("a,b\n1,2\n1e308,1\n", "samples of 'a' reach 1e+308 in size: rescale them"),
        ("a,b\n1,nan\n", "NaN or infinity at line 2, column 2 (b): 'nan'."),
        ("a,b\n1,2\n3,\n", "Arm 'b' has 1 sample(s); every arm needs at least 2."),
        ("a,b\n", "Arm 'a' has 0 sample(s)"),
        ("a\n1\n2\n", "has one column; it needs two or more"),
        ("", "is empty"),
        (" , \n", "is empty"),
    ],
)
def test_a_bad_file_is_one_line_that_says_where(run, tmp_path, text, message):
    code, out, err = run("--csv", csv_file(tmp_path, text))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_file_that_is_not_there_or_not_text_is_one_line(run, tmp_path):
    code, _, err = run("--csv", tmp_path / "none.csv")
    assert code == 2
    assert "No such file" in err
    assert run("--csv", tmp_path)[0] == 2
    (tmp_path / "samples.csv").write_bytes(b"\xff\xfe\x00\x01")
    assert "not a CSV text file" in run("--csv", tmp_path / "samples.csv")[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "either --means (theory) or --csv"),
        (["--means", 1, 2, "--csv", "x.csv"], ", not both"),
        (["--means", 1, 2, "--stds", 1, 2, 3], "one per arm (2), not 3"),
        (["--means", 1, 2, "--stds", "-1"], "must not be negative"),
        (["--means", 1, "nan"], "NaN or infinity"),
        (["--means", "1e200", 0], "means reach 1e+200 in size: rescale them"),
        (["--means", 1, 2, "--stds", "1e308"], "stds reach 1e+308"),
        (["--means", 1], "at least 2 --means"),
        (["--means", 1, 2, "--samples", 1], "2 --samples"),
        (["--csv", "x.csv", "--stds", 2], "leave out --stds"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("option", [["--seed", "-1"], ["--splits", 0]])
def test_bad_options_of_the_file_mode_are_one_line(run, tmp_path, option):
    code, _, err = run("--csv", csv_file(tmp_path, "1,2\n3,4\n"), *option)
    assert code == 2
    assert "must be at least" in err
