from ebql.report.paper.reproduction import Reproduction, count_steps


def test_the_deep_study_joins_the_report_and_is_trained_once(tmp_path):
    for _ in range(2):
        heard = []
        settings = {"seeds": 5, "episodes": 5, "deep_steps": 60}
        Reproduction(tmp_path, **settings).make(["deep"], heard.append)
        assert len(heard) == count_steps(["deep"])
    runs = sorted((tmp_path / "deep-study" / "runs").iterdir())
    assert [run.name.split("_")[1] for run in runs] == ["double-dqn", "dqn", "ebql"]
    attempts = [(run / "attempts.jsonl").read_text().count('"started"') for run in runs]
    assert attempts == [1, 1, 1]
    report = (tmp_path / "report.html").read_text()
    assert "The deep agents" in report
    assert 'href="deep-study/report/report.html"' in report
    assert (tmp_path / "deep.png").exists()
    assert (tmp_path / "deep-study" / "report" / "report.html").exists()
