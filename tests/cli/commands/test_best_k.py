from pathlib import Path

import numpy as np
import pytest

from ebql.cli import main
from ebql.estimators import exact_moments, optimal_ensemble_size, order_moments, single_moments
from ebql.estimators.winner import read_sheet, winner_of, words


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


def test_the_rules_of_other_methods_are_simulated_and_sorted_by_their_error(run):
    means, n = [1.0, 0.8, 0.5], 100
    code, out, _ = run("--means", *means, "--samples", n)
    assert code == 0
    lines = out.split("Rules of other methods")[1].splitlines()
    rows = [line.strip("│ ").split("│") for line in lines if "±" in line]
    found = {row[0].strip(): [float(part) for part in row[1].split("±")] for row in rows}
    for label, rule in (("Maxmin 4", 1), ("order 3 of 4", 3)):
        exact = order_moments(means, 0.2, 4, rule).bias  # four members with 25 samples each
        bias, half_width = found[label]
        assert abs(bias - exact) < 2 * half_width, label
    assert {"weighted", "adaptive order 10", "smoothed, τ = 0.1"} <= found.keys()
    errors = [float(row[3]) for row in rows]
    assert errors == sorted(errors)


def test_rules_that_need_more_members_than_samples_are_left_out(run):
    code, out, _ = run("--means", 0, 1, "--samples", 5)
    assert code == 0
    assert "Maxmin 4" in out
    assert "adaptive order 10" not in out


def test_negative_means_are_numbers_not_options(run):
    assert run("--means", "-1.0", "-0.5", "--samples", 10)[0] == 0


TOTALS = "variant,visitors,conversions\nA,1000,50\nB [red],1000,61\nC,1000,55\n"


def test_the_first_line_of_a_files_answer_is_the_headline_and_the_second_says_what_is_estimated(
    run, tmp_path
):
    path = csv_file(tmp_path, TOTALS)
    code, out, err = run("--csv", path, "--control", "A")
    winner = winner_of(read_sheet(path).arms, control="A")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == words.headline(winner)
    assert lines[1].startswith("Estimated: the true rate of B [red], given that it won")
    assert "Read 3000 samples of 3 arms (one row per arm: visitors, conversions)." in out


def table_row(out: str, label: str) -> list[str]:
    return next(
        [cell.strip() for cell in line.split("│")[2:-1]] for line in out.splitlines() if f"│ {label}" in line
    )


def test_the_tables_hold_every_estimate_and_interval(run, tmp_path):
    path = csv_file(tmp_path, TOTALS)
    out = run("--csv", path)[1]
    winner = winner_of(read_sheet(path).arms)
    for method in ("naive", "split", "ensemble", "shrinkage"):
        value = getattr(winner, method)
        assert table_row(out, method)[0] == f"{100 * value.estimate:.4g}%"
        assert float(table_row(out, method)[2]) == pytest.approx(100 * value.rmse, rel=0.01)
    assert table_row(out, "conditional")[0] == words.interval(winner, winner.interval)
    assert words.recommendation(winner)[:40] in out


def test_samples_of_equal_arms_are_not_answered_by_their_naive_mean(run, tmp_path):
    samples = np.random.default_rng(0).normal(size=(60, 5))
    np.savetxt(tmp_path / "samples.csv", samples, delimiter=",")
    code, out, _ = run("--csv", tmp_path / "samples.csv")
    assert code == 0
    assert "Use: shrinkage" in out
    assert "No header found" in out


def test_older_options_still_work_and_say_that_they_are_not_needed(run, tmp_path):
    path = csv_file(tmp_path, "a,b\n1,2\n3,4\n5,7\n")
    code, out, err = run("--csv", path, "--splits", 20, "--seed", 3)
    assert (code, out) == (0, run("--csv", path)[1])
    assert err == "note: --splits and --seed no longer have any effect; estimates average over all splits.\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,x\n", "Not a number at line 3, column 2 (b): 'x'."),
        ("a,b\n1,2\n3,\n", "Arm 'b' has 1 sample(s); every arm needs at least 2"),
        ("a\n1\n2\n", "Layouts that are understood: one column of samples per arm; one row per observation"),
        ("", "is empty"),
    ],
)
def test_a_bad_file_is_one_line_and_exit_code_2(run, tmp_path, text, message):
    code, out, err = run("--csv", csv_file(tmp_path, text))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_file_that_is_not_there_or_a_control_that_is_no_arm_is_one_line(run, tmp_path):
    code, _, err = run("--csv", tmp_path / "none.csv")
    assert code == 2
    assert "No such file" in err
    code, out, err = run("--csv", csv_file(tmp_path, TOTALS), "--control", "Z")
    assert (code, out) == (2, "")
    assert "There is no arm 'Z'; the arms are A, B [red], C." in err


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
        (["--means", 1, 2, "--control", "A"], "--control names an arm of a --csv file"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
