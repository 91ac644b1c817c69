from ebql.catalogue import FAMILY
from ebql.lab.pages.agents import catalogue


def test_every_method_has_its_equation_and_source():
    methods = catalogue()["methods"]
    assert sorted(row["name"] for row in methods) == sorted(method.name for method in FAMILY)
    assert [row["name"] for row in methods if not row["equation"] or not row["paper"]] == []
    ebql = next(row for row in methods if row["name"] == "EBQL")
    assert ebql["equation"] == ["a* = argmax_a Q^k(s', a);  value = mean_{j≠k} Q^j(s', a*)"]
    assert ebql["text"].startswith("Underestimates. The paper claims less than double Q-learning")
    assert "*" not in ebql["text"]


def test_measurements_are_those_of_the_document_and_of_their_own_method():
    rows = {row["name"]: row for row in catalogue()["methods"]}
    assert rows["Double Q-learning"]["arms"] == [{"name": "DQL", "numbers": [0.0, -0.01, -2.7, -4.15]}]
    assert [one["name"] for one in rows["EBQL"]["arms"]] == ["EBQL 10"]
    measured = {name for name, row in rows.items() if row["arms"]}
    assert measured == {method.name for method in FAMILY if method.tabular}
    assert [one["name"] for one in rows["Rainbow"]["networks"]] == ["Rainbow"]
    assert rows["RainbowEBQL"]["networks"][0]["numbers"][0] == -0.27


def test_methods_go_from_over_to_underestimation():
    found = catalogue()
    signs = [row["bias"] for row in found["methods"]]
    assert signs == sorted(signs, key=("over", "either", "under").index)
    over = [row["arms"][0]["numbers"][0] for row in found["methods"] if row["bias"] == "over" and row["arms"]]
    assert over == sorted(over, reverse=True)
    assert found["low"] < 0 < found["high"]


def test_the_page_lists_and_filters_them(visit):
    page = visit("/agents")
    page.get_by_role("heading", name="EBQL", exact=True).wait_for()
    assert page.locator("article.agent").count() == len(FAMILY)
    page.get_by_role("button", name="Underestimate (").click()
    under = [method.name for method in FAMILY if method.bias == "under"]
    assert sorted(page.locator("article.agent h3").all_inner_texts()) == sorted(under)
    assert page.url.endswith("?only=under")
