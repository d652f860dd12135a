"""What an older version has stored is there after an update."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor


@pytest.mark.django_db(transaction=True)
def test_servers_that_were_disabled_still_are():
    executor = MigrationExecutor(connection)
    executor.migrate([("balancing", "0001_initial")])
    old = executor.loader.project_state([("balancing", "0001_initial")]).apps
    service = old.get_model("balancing", "VirtualService").objects.create(name="web", address="10.0.2.100", port=80)
    for number, enabled in ((11, True), (12, False)):
        address = f"10.2.0.{number}"
        old.get_model("balancing", "RealServer").objects.create(
            service=service, address=address, port=80, enabled=enabled
        )

    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    new = executor.loader.project_state(executor.loader.graph.leaf_nodes()).apps.get_model("balancing", "RealServer")
    assert list(new.objects.order_by("address").values_list("address", "state")) == [
        ("10.2.0.11", "enabled"),
        ("10.2.0.12", "disabled"),
    ]


@pytest.mark.django_db(transaction=True)
def test_checks_lose_what_they_never_used_and_believe_the_redirects_that_were_followed():
    executor = MigrationExecutor(connection)
    executor.migrate([("balancing", "0004_flood_defence")])
    old = executor.loader.project_state([("balancing", "0004_flood_defence")]).apps
    stored = old.get_model("balancing", "VirtualService").objects
    place = {"address": "10.0.2.100", "port": 80}
    stored.create(name="web", check_kind="http", check_path="/a", check_ask="x", **place)
    stored.create(name="shop", check_kind="https", check_expect="fine", check_authority="x", **place)
    stored.create(name="data", check_kind="mysql", check_path="/a", check_login="kim", check_port=1, **place)

    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    new = executor.loader.project_state(executor.loader.graph.leaf_nodes()).apps.get_model(
        "balancing", "VirtualService"
    )
    fields = (
        "check_path",
        "check_ask",
        "check_authority",
        "check_login",
        "check_port",
        "check_method",
        "check_statuses",
    )
    assert {row[0]: row[1:] for row in new.objects.values_list("name", *fields)} == {
        "web": ("/a", "", "", "", 0, "get", "200-399"),
        "shop": ("/", "", "", "", 0, "get", ""),
        "data": ("/", "", "", "", 1, "get", ""),
    }
