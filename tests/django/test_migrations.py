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
