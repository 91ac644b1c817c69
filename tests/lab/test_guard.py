import httpx
import pytest

from ebql.lab.guard import POLICY


def test_every_answer_restricts_what_the_page_may_load(client):
    for path in ("/estimators", "/look.css", "/api/agents", "/nowhere"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in POLICY
    assert "http:" not in POLICY


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "evil.example:8321", "[::1"])
def test_a_host_header_that_does_not_name_this_machine_is_refused(client, host):
    answer = client.get("/estimators", headers={"Host": host})
    assert answer.status_code in (400, 421)
    assert "<" not in answer.text


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1:1", "[::1]:1", "192.168.3.4"])
def test_addresses_of_this_machine_are_accepted(client, host):
    assert client.get("/look.css", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_gets_no_data(client, site):
    assert client.get("/api/agents", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert client.get("/api/agents", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    # A link from another site to a page is fine: the page then asks by itself.
    assert client.get("/agents", headers={"Sec-Fetch-Site": site}).status_code == 200


def test_another_origin_cannot_post(client):
    assert client.post("/api/agents", headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("/api/agents", headers={"Origin": "http://[evil"}).status_code == 403
    own = f"http://{client.base_url.host}:{client.base_url.port}"
    assert client.post("/api/agents", headers={"Origin": own}).status_code == 405


def test_with_a_host_visitors_need_the_token(open_lab, tmp_path):
    address = open_lab(tmp_path, host="127.0.0.1")
    bare = address.url.partition("?")[0]
    assert len(address.token) > 20
    with httpx.Client(base_url=bare) as visitor:
        refused = visitor.get("/api/agents")
        assert refused.status_code == 401
        assert "token" in refused.text
        assert visitor.get("/estimators?token=wrong").status_code == 401
        assert visitor.get("/estimators", headers={"Cookie": "ebql-lab=wrong"}).status_code == 401
        moved = visitor.get(f"/estimators?n=7&token={address.token}")
        assert moved.status_code == 303
        assert moved.headers["location"] == "/estimators?n=7"
        cookie = moved.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert visitor.get("/api/agents").status_code == 200


def test_the_token_does_not_lead_to_another_site(open_lab, tmp_path):
    address = open_lab(tmp_path, host="127.0.0.1")
    url = f"{address.url.partition('?')[0]}/evil.example?token={address.token}"
    assert httpx.get(url).headers["location"] == "/evil.example"
