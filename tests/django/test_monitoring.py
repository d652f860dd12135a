"""The overview: what runs, what waits, what is wrong."""

from forms_on_page import form_values, words


def test_states_by_word_and_sign(client):
    text = words(client.get("/"))
    for state in ("▲ up", "▼ down", "■ disabled", "◇ not checked"):
        assert state in text
    assert "1 of 2 up" in text


def test_the_live_part_is_a_part(client):
    page = client.get("/live/overview/").content.decode()
    assert "<html" not in page
    assert 'hx-swap-oob="true"' in page
    assert "10.2.0.12:80" in page


def test_a_new_service_and_a_removed_one_are_marked(client):
    values = form_values(client.get("/services/1/"))
    client.post("/services/1/", values | {"servers-0-weight": "5"})
    client.post("/services/2/delete/", form_values(client.get("/services/2/delete/")))
    text = words(client.get("/"))
    assert "2 changes are not applied" in text
    assert "changes not applied" in text
    assert "removal not applied" in text


def test_faults_and_a_silent_applier_are_on_every_page(client, box):
    box.fault("data-full", "The data partition is full.")
    for url in ("/", "/network/", "/system/", "/live/overview/"):
        assert "The data partition is full." in words(client.get(url))
    box.reachable = False
    for url in ("/", "/network/", "/access/", "/services/1/", "/history/", "/system/", "/live/overview/"):
        answer = client.get(url)
        assert answer.status_code == 200
        assert "does not answer" in words(answer)
    assert client.get("/changes/").status_code == 503


def test_the_draft_can_be_edited_while_the_applier_is_silent(client, box):
    box.reachable = False
    values = form_values(client.get("/services/1/"))
    assert client.post("/services/1/", values | {"name": "night shop"}).status_code == 302
    assert "night shop" in words(client.get("/"))


def test_nothing_is_claimed_of_a_box_that_is_silent(client, box):
    box.reachable = False
    text = words(client.get("/"))
    assert "? not known" in text
    assert "not applied" not in text
