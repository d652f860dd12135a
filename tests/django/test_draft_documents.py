"""The draft as documents: what is stored is read again, by this software and by a newer one."""

import dataclasses
import json

import pytest
import stored
from django.core.management import call_command
from tests.fake import appliance

from draft import documents
from draft import store as draft
from draft.models import Draft, Part, Rule, Service
from lbconfig.model.problem import UNPRINTABLE
from lbconfig.model.snapshot import SCHEMA, Network, Pair, PairBox, RealServer, SnapshotError, Tuning


def test_each_part_of_a_snapshot_has_its_document(client):
    assert set(documents.PARTS) == set(Part.objects.values_list("name", flat=True))
    whole = dataclasses.asdict(draft.current())
    assert set(whole) == {*documents.PARTS, *documents.OPTIONAL, "services", "firewall", "schema"}


def test_what_could_not_be_read_again_is_not_stored(client):
    before = draft.current()
    row = draft.service(1)
    with pytest.raises(SnapshotError, match=f"note: {UNPRINTABLE}"):
        draft.write_service(dataclasses.replace(row.wish, note="a\x00b"), row, "admin")
    with pytest.raises(SnapshotError, match="port: must be a whole number"):
        draft.write_part("management", dataclasses.replace(before.management, port="443"), "admin")
    assert draft.current() == before and draft.service(1).changed_by != "admin"


def test_an_id_of_a_server_is_given_once(client):
    row = draft.service(1)
    more = dataclasses.replace(row.wish, real_servers=(*row.wish.real_servers, RealServer(0, "10.2.0.77", 80)))
    new = draft.write_service(more, row, "admin", new_ids=True).wish.real_servers[-1]
    assert new.id == 1 + max(one.id for service in appliance.sample_snapshot().services for one in service.real_servers)
    stored.change_server(new.id)
    other = draft.service(2)
    more = dataclasses.replace(other.wish, real_servers=(*other.wish.real_servers, RealServer(0, "10.2.0.78", 25)))
    assert draft.write_service(more, other, "admin", new_ids=True).wish.real_servers[-1].id == new.id + 1


def test_a_draft_of_an_older_software_is_brought_forward(client):
    """Schema 1 had servers that were enabled or not."""
    wanted = draft.current()
    for row in Service.objects.all():
        data = json.loads(row.data)
        for server in data["real_servers"]:
            server["enabled"] = server.pop("state") == "enabled"
        row.data = json.dumps(data)
        row.save()
    versions = dict(Service.objects.values_list("pk", "version"))
    Draft.objects.update(schema=1)
    call_command("migrate", interactive=False, verbosity=0)
    assert draft.same(draft.current(), wanted) and Draft.objects.get().schema == SCHEMA
    assert dict(Service.objects.values_list("pk", "version")) == versions
    assert Rule.objects.count() == len(wanted.firewall.rules)


def test_a_pair_is_kept_and_gone(client):
    """What is imported is in the draft as it is, and nothing of it stays behind."""
    before = draft.current()
    box = PairBox(before.network, before.tuning, "eth9", "192.0.2.1/30", "A" * 43 + "=")
    pair = Pair("0" * 32, (box, dataclasses.replace(box, cable_address="192.0.2.2/30")))
    wanted = dataclasses.replace(before, network=Network(), tuning=Tuning(), pair=pair)
    draft.replace(wanted, "kim")
    assert draft.current() == wanted and Part.objects.get(pk="pair").wish == pair
    counted = draft.counter()
    draft.replace(before, "kim")
    assert draft.current() == before and not Part.objects.filter(pk="pair") and draft.counter() > counted
