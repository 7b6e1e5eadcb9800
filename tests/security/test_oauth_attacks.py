"""What RFC 9700 (the security best practice of OAuth) warns of, tried against the served gate: each is refused with the right code."""

from __future__ import annotations

import http.server
import ipaddress
import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from gate_world import PROJECT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oauth_world import BACK, OAuthWorld, answered, served
from postgres_server import Schemas

from memory_git.charon.limits import LimitSettings
from memory_git.charon.oauth_documents import Documents, is_public
from memory_git.domain.errors import Invalid
from memory_git.domain.redirects import fits, redirect_fault
from memory_git.storage.charon_schema import CHARON_SCHEMA
from memory_git.storage.lethe_schema import SCHEMA

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OAuthWorld]:
    with served(tmp_path_factory.mktemp("oauth") / "data") as world:
        yield world


def told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, str(answer.json().get("error"))


# where people are sent


@pytest.mark.parametrize(
    "uri",
    [
        "http://client.example/back",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://client.example/back#fragment",
        "https://user:word@client.example/back",
        "https://*.client.example/back",
        "//client.example/back",
        "https:///back",
        "https://client.example\\@evil.example/",
        "https://client.example/\nback",
        "ftp://client.example/",
        "",
        7,
    ],
)
def test_an_address_that_is_no_safe_place_to_send_people_is_not_registered(
    house: OAuthWorld, uri: Any
) -> None:
    assert told(house.registers(redirect_uris=[uri])) == (400, "invalid_redirect_uri")
    assert redirect_fault(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/back",
        f"{BACK}/../steal",
        f"{BACK}?next=https://evil.example",
        "http://127.0.0.1.evil.example/back",
        "http://localhost/back",
        "https://127.0.0.1/back",
        "http://127.0.0.1/BACK",
    ],
)
def test_a_redirect_address_that_was_not_registered_leads_nowhere(house: OAuthWorld, uri: str) -> None:
    answer = httpx.get(house.client().address(redirect_uri=uri))
    assert answer.status_code == 400
    assert "location" not in answer.headers and "http-equiv" not in answer.text


def test_only_the_port_of_a_loopback_address_may_be_another() -> None:
    known = ["http://127.0.0.1/back", "https://client.example/back"]
    assert fits("http://127.0.0.1:50123/back", known)
    assert not fits("https://client.example:8443/back", known)
    assert not fits("http://[::1]:50123/back", known)


def test_an_unknown_client_sends_nobody_anywhere(house: OAuthWorld) -> None:
    client = house.client()
    answer = httpx.get(client.address(client_id="client_unknown", redirect_uri="https://evil.example/"))
    assert (answer.status_code, "location" in answer.headers) == (400, False)


def test_a_client_without_a_redirect_address_is_not_registered(house: OAuthWorld) -> None:
    assert told(house.registers(redirect_uris=[])) == (400, "invalid_redirect_uri")
    assert told(house.registers(client_name="x" * 101)) == (400, "invalid_client_metadata")
    assert told(house.registers(grant_types=["implicit"])) == (400, "invalid_client_metadata")


# what is asked for


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"scope": "memory.review"}, "invalid_scope"),
        ({"scope": "memory.read memory.merge"}, "invalid_scope"),
        ({"scope": "admin"}, "invalid_scope"),
        ({"scope": "memory.redact"}, "invalid_scope"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": "http://127.0.0.1:1/mcp"}, "invalid_target"),
        ({"state": "x" * 5000}, "invalid_request"),
    ],
)
def test_a_bad_request_is_told_to_the_client_with_its_state_and_our_name(
    house: OAuthWorld, changes: dict[str, str | None], error: str
) -> None:
    client = house.client()
    answer = httpx.get(client.address(**changes))
    said = answered(answer)
    assert (answer.status_code, said["error"]) == (303, error)
    assert said["iss"] == house.url, "an answer of another server is not taken for ours (mix-up)"
    assert said["state"] == changes.get("state", client.state)


def test_a_field_that_stands_twice_is_refused(house: OAuthWorld) -> None:
    client = house.client()
    again = urlencode({"redirect_uri": "https://evil.example/"})
    assert httpx.get(f"{client.address()}&{again}").status_code == 400
    twice = f"client_id={client.client_id}&client_id={client.client_id}&grant_type=authorization_code"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert told(httpx.post(f"{house.url}/oauth/token", content=twice, headers=headers)) == (
        400,
        "invalid_request",
    )


# the consent


def test_a_consent_without_the_pages_own_token_is_refused(house: OAuthWorld) -> None:
    with house.person() as person:
        person.opens(house.client().address())
        assert person.decides(form_token="forged").status_code == 403
        assert person.decides(form_token="").status_code == 403


def test_a_consent_of_nobody_is_refused_and_leads_to_the_sign_in(house: OAuthWorld) -> None:
    with httpx.Client(base_url=house.url) as stranger:
        with house.person() as person:
            person.opens(house.client().address())
            form = {**person.form(), "project": PROJECT, "scope:memory.read": "on", "decision": "allow"}
        assert stranger.post("/oauth/consent", data=form).status_code == 401


def test_a_person_who_signs_in_on_the_way_comes_back_to_the_request_and_to_nothing_else(
    house: OAuthWorld,
) -> None:
    with httpx.Client(base_url=house.url) as http:
        first = http.get(house.client().address())
        address = first.text.partition("0;url=")[2].partition('"')[0].replace("&amp;", "&")
        asked = http.get(address)
        assert asked.status_code == 401 and f'name="next" value="{address}"' in asked.text
        signed = http.post("/sign-in", data={"token": house.world.tokens["ann"], "next": address})
        assert signed.headers["location"] == address
        for elsewhere in ("https://evil.example/", "//evil.example", "/oauth/consent?request=x&next=//evil"):
            answer = http.post("/sign-in", data={"token": house.world.tokens["ann"], "next": elsewhere})
            assert answer.headers["location"] == "/projects"


def test_the_consent_can_not_be_framed_and_may_send_people_back_to_the_client_alone(
    house: OAuthWorld,
) -> None:
    with house.person() as person:
        policy = person.opens(house.client().address()).headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1;" in policy


def test_a_client_is_shown_by_its_id_and_where_it_leads_and_its_name_is_no_markup(house: OAuthWorld) -> None:
    client = house.client(client_name="<b>Claude</b>")
    with house.person() as person:
        text = person.opens(client.address()).text
    assert "<b>Claude</b>" not in text and "&lt;b&gt;Claude&lt;/b&gt;" in text
    assert client.client_id in text and "http://127.0.0.1" in text


@pytest.mark.parametrize(
    ("name", "scopes", "project"),
    [
        ("bob", ["memory.commit"], PROJECT),
        ("ann", ["memory.review"], PROJECT),
        ("ann", ["admin"], PROJECT),
        ("ann", [], PROJECT),
    ],
)
def test_nobody_gives_what_they_do_not_hold_or_the_client_did_not_ask(
    house: OAuthWorld, name: str, scopes: list[str], project: str
) -> None:
    with house.person(name) as person:
        person.opens(house.client().address())
        assert person.decides(project, scopes).status_code == 400


def test_a_project_that_the_person_does_not_know_is_not_found(house: OAuthWorld) -> None:
    house.world.gate.init_project(house.world.operator, "hidden")
    with house.person("bob") as person:
        person.opens(house.client().address())
        assert person.decides("hidden", ["memory.read"]).status_code == 404


@pytest.mark.parametrize("agent", ["bob", "one", "charon", "a/b", "", "ann"])
def test_a_client_does_not_become_somebody_else(house: OAuthWorld, agent: str) -> None:
    with house.person() as person:
        person.opens(house.client().address())
        assert person.decides(agent=agent).status_code == 400


def test_an_agent_of_one_person_is_not_taken_by_another(house: OAuthWorld) -> None:
    house.tokens(house.client(), "ann", agent="ann-own")
    with house.person("bob") as person:
        person.opens(house.client().address())
        assert person.decides(scopes=["memory.read"], agent="ann-own").status_code == 400


def test_an_agent_lets_no_client_in(house: OAuthWorld) -> None:
    with house.person("one") as agent:
        agent.opens(house.client().address())
        assert agent.decides(scopes=["memory.read"]).status_code == 403


def test_a_decision_is_made_once(house: OAuthWorld) -> None:
    with house.person() as person:
        person.opens(house.client().address())
        assert person.decides().status_code == 303
        assert person.decides().status_code == 404


def test_a_request_that_was_turned_away_gives_nothing(house: OAuthWorld) -> None:
    client = house.client()
    with house.person() as person:
        person.opens(client.address())
        answer = person.decides(decision="refuse")
        assert answered(answer)["error"] == "access_denied"
        assert answered(answer)["state"] == client.state
        assert person.decides().status_code == 404


# the code


def test_a_code_is_good_once_and_shown_again_ends_what_came_of_it(house: OAuthWorld) -> None:
    client = house.client()
    code = house.code(client)
    first = client.token(code=code).json()
    assert house.calls(first["access_token"]).status_code == 200
    assert told(client.token(code=code)) == (400, "invalid_grant")
    assert house.calls(first["access_token"]).status_code == 401
    assert told(client.refresh(first["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": None}, "invalid_grant"),
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1/other"}, "invalid_grant"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"code": "x" * 43}, "invalid_grant"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"grant_type": "implicit"}, "unsupported_grant_type"),
    ],
)
def test_a_code_is_worth_nothing_without_all_that_belongs_to_it(
    house: OAuthWorld, changes: dict[str, str | None], error: str
) -> None:
    client = house.client()
    assert told(client.token(**{"code": house.code(client), **changes})) == (400, error)


def test_the_challenge_itself_is_no_verifier(house: OAuthWorld) -> None:
    client = house.client()
    assert told(client.token(code=house.code(client), code_verifier=client.challenge())) == (
        400,
        "invalid_grant",
    )


def test_a_code_of_another_client_is_not_known(house: OAuthWorld) -> None:
    mine, other = house.client(), house.client()
    other.verifier = mine.verifier
    assert told(other.token(code=house.code(mine))) == (400, "invalid_grant")


def test_a_code_expires(tmp_path: Path) -> None:
    with served(tmp_path / "data") as house:
        client = house.client()
        code = house.code(client)
        house.world.later(seconds=61)
        assert told(client.token(code=code)) == (400, "invalid_grant")


def test_a_secret_or_credentials_elsewhere_than_in_the_body_are_refused(house: OAuthWorld) -> None:
    client = house.client()
    assert told(client.token(code=house.code(client), client_secret="x")) == (401, "invalid_client")
    fields = {"grant_type": "authorization_code", "client_id": client.client_id}
    assert told(httpx.post(f"{house.url}/oauth/token?{urlencode(fields)}", data=fields)) == (
        400,
        "invalid_request",
    )
    answer = httpx.post(f"{house.url}/oauth/token", data=fields, auth=(client.client_id, "x"))
    assert told(answer) == (401, "invalid_client")
    assert told(httpx.post(f"{house.url}/oauth/token", json=fields)) == (400, "invalid_request")


# the tokens


def test_a_refresh_token_is_good_once_and_used_again_ends_the_family(house: OAuthWorld) -> None:
    client = house.client()
    first = house.tokens(client)
    second = client.refresh(first["refresh_token"]).json()
    assert second["refresh_token"] != first["refresh_token"]
    assert house.calls(second["access_token"]).status_code == 200
    assert told(client.refresh(first["refresh_token"])) == (400, "invalid_grant")
    assert house.calls(second["access_token"]).status_code == 401
    assert told(client.refresh(second["refresh_token"])) == (400, "invalid_grant")


def test_a_refresh_widens_nothing_and_may_narrow(house: OAuthWorld) -> None:
    client = house.client()
    first = house.tokens(client, scopes=["memory.read", "memory.search"])
    assert first["scope"] == "memory.read memory.search"
    wider = client.refresh(first["refresh_token"], scope="memory.read memory.commit")
    assert told(wider) == (400, "invalid_scope")
    assert client.refresh(first["refresh_token"], scope="memory.read").json()["scope"] == "memory.read"


def test_a_refresh_token_of_another_client_is_not_known(house: OAuthWorld) -> None:
    stolen = house.tokens(house.client())["refresh_token"]
    assert told(house.client().refresh(stolen)) == (400, "invalid_grant")


def test_a_refresh_token_is_no_access_token_and_an_access_token_no_refresh_token(house: OAuthWorld) -> None:
    client = house.client()
    tokens = house.tokens(client)
    assert house.calls(tokens["refresh_token"]).status_code == 401
    assert told(client.refresh(tokens["access_token"])) == (400, "invalid_grant")


def test_a_token_for_one_face_opens_no_other(house: OAuthWorld) -> None:
    client = house.client()
    tokens = house.tokens(client)
    refused = house.calls(tokens["access_token"], f"/api/v1/projects/{PROJECT}/policy")
    assert (refused.status_code, 'error="invalid_token"' in refused.headers["www-authenticate"]) == (
        401,
        True,
    )
    api = house.client()
    with house.person() as person:
        person.opens(api.address(resource=f"{house.url}/api/v1"))
        code = answered(person.decides())["code"]
    token = api.token(code=code, resource=f"{house.url}/api/v1").json()["access_token"]
    assert house.calls(token, f"/api/v1/projects/{PROJECT}/policy").status_code == 200
    assert house.calls(token).status_code == 401


def test_a_token_of_another_gate_is_not_known_here(house: OAuthWorld, tmp_path: Path) -> None:
    with served(tmp_path / "other") as other:
        foreign = other.tokens(other.client())["access_token"]
    assert house.calls(foreign).status_code == 401


@pytest.mark.parametrize("change", ["secret", "id", "prefix", "longer"])
def test_a_token_that_was_changed_is_not_known(house: OAuthWorld, change: str) -> None:
    token = house.tokens(house.client())["access_token"]
    prefix, token_id, secret = token.split("_")
    changed = {
        "secret": f"{prefix}_{token_id}_{'0' * 64}",
        "id": f"{prefix}_{'0' * 16}_{secret}",
        "prefix": f"obol_{token_id}_{secret}",
        "longer": f"{token}0",
    }[change]
    assert house.calls(changed).status_code == 401


def test_a_token_in_the_address_is_no_token(house: OAuthWorld) -> None:
    token = house.tokens(house.client())["access_token"]
    answer = httpx.post(
        f"{house.url}/mcp?access_token={token}", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    )
    assert answer.status_code == 401


def test_a_client_never_reviews_merges_or_administers_whoever_let_it_in(house: OAuthWorld) -> None:
    client = house.client()
    with house.person() as person:
        person.opens(client.address(resource=house.url))
        code = answered(person.decides())["code"]
    token = client.token(code=code, resource=house.url).json()["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    me = httpx.get(f"{house.url}/api/v1/whoami", headers=headers).json()
    assert not {"memory.review", "memory.merge", "memory.redact", "admin", "memory.write"} & set(me["scopes"])
    refused = httpx.get(f"{house.url}/api/v1/principals", headers=headers)
    assert refused.status_code in (403, 404)
    judged = httpx.post(
        f"{house.url}/api/v1/proposals/x/review", json={"verdict": "approve"}, headers=headers
    )
    assert judged.status_code in (403, 404)


def test_a_scope_that_the_token_lacks_is_named(house: OAuthWorld) -> None:
    client = house.client()
    with house.person() as person:
        person.opens(client.address(resource=house.url, scope="memory.read"))
        code = answered(person.decides(scopes=["memory.read"]))["code"]
    token = client.token(code=code, resource=house.url).json()["access_token"]
    body = {"message": "m", "ops": [], "read_head": True}
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.post(f"{house.url}/api/v1/projects/{PROJECT}/changesets", json=body, headers=headers)
    assert answer.status_code == 403
    assert 'error="insufficient_scope", scope="memory.commit"' in answer.headers["www-authenticate"]


def test_a_client_commits_over_the_api_by_the_quick_road_too(house: OAuthWorld) -> None:
    client = house.client()
    with house.person() as person:
        person.opens(client.address(resource=house.url))
        code = answered(person.decides(agent="ann-quick"))["code"]
    token = client.token(code=code, resource=house.url).json()["access_token"]
    op = {"op_type": "add_memory", "payload": {"content": "by a client"}}
    body = {"message": "m", "ops": [op], "read_head": True}
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.post(f"{house.url}/api/v1/projects/{PROJECT}/changesets", json=body, headers=headers)
    assert (answer.status_code, answer.json()["changeset"]["author_principal"]) == (201, "ann-quick")


def test_what_the_person_loses_the_client_loses_at_the_next_call(tmp_path: Path) -> None:
    with served(tmp_path / "data") as house:
        client = house.client()
        tokens = house.tokens(client, "bob", scopes=["memory.read", "memory.search"])
        gate, operator = house.world.gate, house.world.operator
        caller = gate.authenticate(tokens["access_token"], "mcp")
        gate.log(caller, PROJECT, ref="refs/shared/main")
        gate.revoke_grant(operator, "bob", PROJECT)
        assert gate.authenticate(tokens["access_token"], "mcp").standing.scopes == frozenset()
        gate.grant(operator, "bob", PROJECT)
        gate.disable_principal(operator, "bob")
        assert house.calls(tokens["access_token"]).status_code == 401
        assert told(client.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


def test_a_revoked_token_is_over_and_a_foreign_one_is_left_alone(house: OAuthWorld) -> None:
    client, other = house.client(), house.client()
    tokens = house.tokens(client)

    def revokes(who: str, token: str) -> httpx.Response:
        return httpx.post(f"{house.url}/oauth/revoke", data={"client_id": who, "token": token})

    assert told(revokes(other.client_id, tokens["refresh_token"])) == (401, "invalid_client")
    assert revokes(client.client_id, "ort_unknown").status_code == 200
    assert revokes(client.client_id, tokens["refresh_token"]).status_code == 200
    assert house.calls(tokens["access_token"]).status_code == 401


def test_a_client_that_was_turned_off_is_over_for_good(house: OAuthWorld) -> None:
    client = house.client()
    tokens = house.tokens(client)
    house.world.gate.oauth_disable_client(house.world.operator, client.client_id)
    assert house.calls(tokens["access_token"]).status_code == 401
    assert told(client.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert httpx.get(client.address()).status_code == 400


def test_the_setting_narrows_what_clients_may_have(tmp_path: Path) -> None:
    with served(tmp_path / "data", oauth_author_scopes=False) as house:
        client = house.client()
        assert answered(httpx.get(client.address(scope="memory.commit")))["error"] == "invalid_scope"
        assert house.tokens(client)["scope"] == "memory.propose memory.read memory.search"


def test_on_postgresql_codes_rotate_replays_end_and_people_let_go(tmp_path: Path, schemas: Schemas) -> None:
    urls = {"database_url": schemas.new(CHARON_SCHEMA), "lethe_database_url": schemas.new(SCHEMA)}
    with served(tmp_path / "data", **urls) as house:
        client = house.client()
        code = house.code(client)
        first = client.token(code=code).json()
        second = client.refresh(first["refresh_token"]).json()
        assert house.calls(second["access_token"]).status_code == 200
        assert told(client.refresh(first["refresh_token"])) == (400, "invalid_grant")
        assert house.calls(second["access_token"]).status_code == 401
        other = house.tokens(house.client(), agent="ann-notes")
        held = [
            item
            for item in house.world.gate.oauth_connections(house.world.caller("ann"))
            if not item["revoked_at"]
        ]
        house.world.gate.oauth_disconnect(house.world.caller("ann"), held[0]["grant_id"])
        assert house.calls(other["access_token"]).status_code == 401


def test_no_secret_of_oauth_stands_in_the_database_or_the_ledger(tmp_path: Path) -> None:
    with served(tmp_path / "data") as house:
        client = house.client()
        code = house.code(client)
        tokens = client.token(code=code).json()
        secrets = [code, *(tokens[name].rpartition("_")[2] for name in ("access_token", "refresh_token"))]
        house.world.gate._house.ledger.flush()
        stored = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
        assert not [secret for secret in secrets if secret.encode() in stored]
        rows = [
            row
            for row in house.world.gate.ledger_export(house.world.operator)
            if row["route"].startswith("oauth")
        ]
        assert {row["route"] for row in rows} >= {"oauth_consent", "oauth_token"}


def test_in_recovery_nobody_is_let_in_and_whoever_is_in_reads(tmp_path: Path) -> None:
    with served(tmp_path / "data") as house:
        tokens, client = house.tokens(house.client()), house.client()
        house.world.gate._house.recovery_readonly = True
        assert told(house.registers()) == (503, "temporarily_unavailable")
        assert httpx.get(client.address()).status_code == 503
        assert told(client.token(code="x" * 43)) == (503, "temporarily_unavailable")
        house.world.gate._house.recovery_readonly = False
        assert house.calls(tokens["access_token"]).status_code == 200


def test_registrations_are_few_a_second(tmp_path: Path) -> None:
    with served(tmp_path / "data", limits=LimitSettings(registrations_per_s=5)) as house:
        answers = [house.registers() for _ in range(40)]
        limited = [answer for answer in answers if answer.status_code == 429]
        assert limited and int(limited[0].headers["retry-after"]) >= 1


# client-id metadata documents


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1", "fd00::1", "fe80::1",
     "::ffff:10.0.0.1", "2002:0a00:0001::", "224.0.0.1", "240.0.0.1"],
)  # fmt: skip
def test_an_address_that_is_not_on_the_open_network_is_not_asked(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


def test_public_addresses_are() -> None:
    assert is_public(ipaddress.ip_address("93.184.215.14")) and is_public(
        ipaddress.ip_address("2606:2800:21f::1")
    )


@pytest.mark.parametrize(
    "client_id",
    [
        "https://localhost/client.json",
        "https://127.0.0.1:1/client.json",
        "https://[::1]/client.json",
        "https://2130706433/client.json",
        "https://client.example",
        "https://user@client.example/c",
        "https://client.example/a/../c",
        "https://client.example/c?x=1",
        "https://client.example/c#f",
        "https://client.example:port/c",
    ],
)
def test_a_document_in_a_private_or_crooked_place_is_no_client(house: OAuthWorld, client_id: str) -> None:
    answer = httpx.get(house.client().address(client_id=client_id))
    assert (answer.status_code, "location" in answer.headers) == (400, False)


@contextmanager
def document_server(
    folder: Path, answer: Callable[[http.server.BaseHTTPRequestHandler], None]
) -> Iterator[tuple[str, ssl.SSLContext]]:
    """Serves documents by TLS on loopback, with a certificate of its own."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert,
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"https://localhost:{server.server_port}", ssl.create_default_context(cafile=str(cert))
    finally:
        server.shutdown()
        server.server_close()


def says(handler: http.server.BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def test_a_client_that_is_described_by_a_document_is_let_in(house: OAuthWorld, tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        document = {
            "client_id": f"https://{handler.headers['Host']}{handler.path}",
            "client_name": "Described",
            "redirect_uris": [BACK],
        }
        says(handler, 200, json.dumps(document).encode())

    with document_server(tmp_path, answer) as (url, tls):
        documents, before = Documents(lambda _: True, tls), house.world.gate._house.documents
        house.world.gate._house.documents = documents
        try:
            client = house.client()
            client.client_id = f"{url}/client.json"
            tokens = house.tokens(client)
            assert house.calls(tokens["access_token"]).status_code == 200
            assert asked == ["/client.json"], "it is remembered"
        finally:
            house.world.gate._house.documents = before


@pytest.mark.parametrize("fault", ["other_id", "redirect", "large", "no_json", "wrong_certificate"])
def test_a_document_that_is_not_what_it_should_be_is_no_client(tmp_path: Path, fault: str) -> None:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        own = {"client_id": f"https://{handler.headers['Host']}{handler.path}", "redirect_uris": [BACK]}
        if fault == "redirect":
            says(handler, 302, b"", Location="https://localhost/elsewhere")
        elif fault == "large":
            says(handler, 200, json.dumps({**own, "x": "y" * (70 << 10)}).encode())
        elif fault == "no_json":
            says(handler, 200, b"<html>")
        else:
            says(handler, 200, json.dumps({**own, "client_id": "https://other.example/c"}).encode())

    with document_server(tmp_path, answer) as (url, tls):
        documents = Documents(lambda _: True, None if fault == "wrong_certificate" else tls)
        with pytest.raises(Invalid) as refused:
            documents.get(f"{url}/client.json")
    assert refused.value.code == "invalid_client"


# whatever is sent


WORDS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["code", "S256", BACK, "memory.read", "\ud800", "\x00", "https://[", "a" * 5000]),
)
PARAMS = st.dictionaries(
    st.sampled_from(
        ["client_id", "redirect_uri", "response_type", "scope", "state", "code", "code_verifier", "code_challenge", "grant_type",
         "code_challenge_method", "resource", "refresh_token", "token", "request", "x"]
    ),
    WORDS,
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def encoded(params: dict[str, str]) -> bytes:
    return urlencode(params, errors="surrogatepass").encode()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(params=PARAMS, name=st.booleans())
def test_no_form_or_query_gets_a_server_error_or_sends_people_away(
    house: OAuthWorld, params: dict[str, str], name: bool
) -> None:
    if name:
        params = {**params, "client_id": "client_unknown"}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for path in ("/oauth/token", "/oauth/revoke"):
        answer = httpx.post(f"{house.url}{path}", content=encoded(params), headers=headers)
        assert answer.status_code in (200, 400, 401, 413), answer.text
        assert answer.status_code == 200 or answer.json()["error"]
    asked = httpx.get(f"{house.url}/oauth/authorize?{encoded(params).decode()}")
    assert (asked.status_code in (400, 413, 414), "location" in asked.headers) == (True, False)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(metadata=JSON, uris=st.lists(WORDS, max_size=3))
def test_no_registration_gets_a_server_error(house: OAuthWorld, metadata: Any, uris: list[str]) -> None:
    body = {**metadata, "redirect_uris": uris} if isinstance(metadata, dict) else metadata
    answer = httpx.post(f"{house.url}/oauth/register", content=json.dumps(body).encode())
    assert answer.status_code in (201, 400), answer.text
    assert answer.status_code == 201 or answer.json()["error"] in (
        "invalid_client_metadata",
        "invalid_redirect_uri",
    )
