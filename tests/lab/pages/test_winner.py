import pytest

from ebql.cli import main
from ebql.errors import InputError
from ebql.lab.pages.winner import MOST_BYTES, answered

TABLE = "variant,visitors,conversions\nA,1000,50\nB,1010,71\nC,990,55\n"


def test_the_words_and_numbers_are_those_of_the_command(tmp_path, capsys):
    (tmp_path / "test.csv").write_text(TABLE)
    assert main(["best-k", "--csv", str(tmp_path / "test.csv"), "--control", "A"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    told = answered(TABLE.encode(), "A")
    for sentence in (told["headline"], told["estimand"], told["recommendation"], *told["read"]):
        assert " ".join(sentence.split()) in said
    for row in (*told["arms"], *told["values"]):
        assert row["shown"] in said
    assert [arm["name"] for arm in told["arms"] if arm["won"]] == ["B"]
    assert sum(value["recommended"] for value in told["values"]) == 1


@pytest.mark.parametrize("content", [b"", b"hello", b"\xff\xfe\x00", b"a,b\n1,x\n2,3\n", b"<html></html>"])
def test_a_table_that_is_none_is_refused_in_one_line(content, client):
    with pytest.raises(InputError):
        answered(content, None)
    refused = client.post("/api/winner", content=content)
    assert refused.status_code == 400
    assert "\n" not in refused.json()["error"]


def test_an_unknown_control_and_a_huge_table_are_refused(client):
    with pytest.raises(InputError):
        answered(TABLE.encode(), "Z")
    refused = client.post("/api/winner", content=b"1" * (MOST_BYTES + 1))
    assert "ebql best-k --csv" in refused.json()["error"]


def test_a_pasted_table_is_answered_and_its_names_are_text(visit):
    page = visit("/winner")
    page.get_by_text("No data yet").wait_for()
    hostile = "<img src=x onerror=alert(1)>"
    table = TABLE.replace("B,", f"{hostile},")
    page.get_by_label("The test's data").fill(table)
    page.locator(".headline").wait_for()
    assert page.locator(".headline").inner_text() == answered(table.encode(), None)["headline"]
    assert hostile in page.locator(".headline").inner_text()
    page.get_by_label("Compare with").select_option("A")
    wanted = answered(table.encode(), "A")["headline"]
    visit.until(lambda: page.locator(".headline").inner_text() == wanted)
    assert page.locator("main img").count() == 0


def test_what_is_no_table_is_told_on_the_page(visit):
    page = visit("/winner")
    page.get_by_label("The test's data").fill("no numbers here")
    page.locator("#error").wait_for()
    assert page.locator("#error").inner_text()
    visit.troubles.clear()  # the browser itself logs that the request was refused


def test_a_file_can_be_opened_or_dropped(visit, tmp_path):
    (tmp_path / "test.csv").write_text(TABLE)
    page = visit("/winner")
    page.get_by_label("Open a file").set_input_files(tmp_path / "test.csv")
    page.locator(".headline").wait_for()
    assert page.locator(".headline").inner_text() == answered(TABLE.encode(), None)["headline"]
    other = TABLE.replace("71", "93")
    page.evaluate(
        """(text) => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([text], "other.csv"));
          document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true }));
        }""",
        other,
    )
    wanted = answered(other.encode(), None)["headline"]
    visit.until(lambda: page.locator(".headline").inner_text() == wanted)
