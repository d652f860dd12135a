"""Whatever passes validation is taken by nft, by ldirectord and by the kernel; of more: make random-snapshots."""

import dataclasses
import json
import re
import time
from collections.abc import Iterator

import pytest
from tests.lab.programs import Programs, Said
from tests.unit.lbconfig.lbconfig_samples import SAMPLE
from tests.unit.lbconfig.lbconfig_strategies import drawn, examples

from lbconfig.model.snapshot import Snapshot, to_data
from lbconfig.render import ldirectord, nftables
from lbconfig.wanted import table as ipvs

READ, NOT_RUNNING, CONFIGURATION_ERROR = 0, 3, 2  # the programs' exit codes
BATCH = 100  # snapshots that the guest gets with one command
# Each table follows the one before, as at an apply: first as the applier leaves it, then as it is when ldirectord has
# found every server up. What the kernel holds then is printed.
ON_THE_BOX = """
import dataclasses, json, sys
from applier.parts import table
from applier.host.ipvs_listing import Entry
from applier.host.host import HostError, Live
from applier.host.ipvs_listing import Listing
from lbconfig.wanted import table as ipvs
from lbconfig.model.snapshot import from_json

host, listing = Live(), Listing()

def listed(services):
    # What the quicker reading of the table says differently.
    found = listing(table.listing(host))
    expected = {
        one.service.key: {place: Entry(s.server.weight, s.active, s.inactive) for place, s in one.servers.items()}
        for one in services
    }
    return [str(key) for key in expected if found.get(key) != expected[key]] + [
        str(key) for key in found.keys() - expected.keys() if not key[0].startswith("fwm")
    ]

for line in sys.stdin:
    snapshot = from_json(line)
    try:
        for checked in (ipvs.checked(snapshot), {}):
            table.change(host, table.read_table(host), ipvs.wanted(snapshot), checked)
        table.set_timeouts(host, ipvs.timeouts(snapshot))
        there = table.read(host)
        services = [
            [
                dataclasses.asdict(one.service),
                [[*place, dataclasses.asdict(s.server)] for place, s in one.servers.items()],
            ]
            for one in there
        ]
        print(json.dumps([table.timeouts(host), services, listed(there)]))
    except HostError as error:
        print(json.dumps(str(error)))
"""
IN_GUEST = ["env", "PYTHONPATH=/usr/lib/fairlead/webui", "python3", "-c", ON_THE_BOX]


@pytest.fixture(scope="module")
def random_snapshots() -> list[Snapshot]:
    count = examples(100)
    found = drawn(count)
    assert len(found) == count
    assert any(snapshot.enabled_services for snapshot in found)
    return found


@pytest.fixture(scope="module")
def programs(image, tmp_path_factory) -> Iterator[Programs]:
    with Programs(image, tmp_path_factory.mktemp("programs")) as programs:
        yield programs


def test_nft_takes_all_of_them(programs, random_snapshots):
    for snapshot in random_snapshots:
        rules = nftables.render(snapshot)
        said = programs.nft(rules)
        assert (said.exit, said.text) == (READ, ""), rules


def test_ldirectord_takes_all_of_them(programs, random_snapshots):
    for snapshot in random_snapshots:
        file = ldirectord.render(snapshot)
        said = programs.director(file)
        assert said.exit == NOT_RUNNING, f"{said.text}\n{file}"
        assert "Warning" not in said.text, f"{said.text}\n{file}"


@pytest.mark.parametrize(
    ("good", "bad"), [("checktimeout=2", "checktimeout=0"), ("=tcp", "=icmp"), (":8000 masq", ":8000 mask")]
)
def test_ldirectord_refuses_a_broken_file_between_two_good_ones(programs, good, bad):
    file = ldirectord.render(SAMPLE)
    broken = file.replace(good, bad)
    said = [programs.director(text) for text in (file, broken, file)]
    assert [one.exit for one in said] == [NOT_RUNNING, CONFIGURATION_ERROR, NOT_RUNNING]
    assert "Configuration Error" in said[1].text
    alone = [programs.director_alone(text) for text in (file, broken)]
    assert [without_times(one) for one in alone] == [without_times(one) for one in said[:2]]


def test_nft_refuses_a_broken_file(programs):
    said = programs.nft(nftables.render(SAMPLE).replace(" . tcp . 80", " . tcp . 65536"))
    assert said.exit == 1 and "65536" in said.text


def without_times(said: Said) -> Said:
    """Without what differs from one run to the next: time and process."""
    return Said(said.exit, re.sub(r"\[.*?\] ", "", said.text))


def test_the_kernel_holds_what_each_of_them_says(director, random_snapshots):
    some = random_snapshots[: examples(40)]
    began = time.monotonic()
    for start in range(0, len(some), BATCH):
        batch = some[start : start + BATCH]
        lines = [json.dumps(wish(snapshot)) for snapshot in batch]
        held = director.succeed(IN_GUEST, timeout=600, stdin="\n".join(lines).encode()).splitlines()
        for snapshot, line in zip(batch, held, strict=True):
            answer = json.loads(line)
            kernel, listed = (answer, "") if isinstance(answer, str) else (answer[:2], answer[2])
            assert in_order(kernel) == in_order(wanted(snapshot)), ipvs.render(snapshot)
            assert not listed, f"/proc/net/ip_vs says something else about {listed}"
    services = [service for snapshot in some for service in snapshot.enabled_services]
    servers = sum(server.in_table for service in services for server in service.real_servers)
    seconds = time.monotonic() - began
    print(f"{len(some)} tables of {len(services)} services with {servers} servers in {seconds:.0f} s")


def wish(snapshot: Snapshot) -> dict:
    """What of it concerns the table."""
    return to_data(Snapshot(snapshot.services, policy=snapshot.policy))


def wanted(snapshot: Snapshot) -> list:
    """In the form that the guest answers in."""
    services = [
        [dataclasses.asdict(service), [[*place, dataclasses.asdict(one)] for place, one in servers.items()]]
        for service, servers in ipvs.wanted(snapshot).services.items()
    ]
    return json.loads(json.dumps([ipvs.timeouts(snapshot), services]))


def in_order(answer: list | str) -> list | str:
    """The kernel has an order of its own; a refusal, which is text, stays one."""
    if isinstance(answer, str):
        return answer
    timeouts, services = answer
    return [timeouts, sorted(([service, sorted(servers, key=str)] for service, servers in services), key=str)]
