"""The lines of `difference`, applied one by one to a model of the kernel's table."""

import dataclasses
import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lbconfig_samples import DNS, SAMPLE, WEB, with_service

from lbconfig.model.snapshot import CheckKind, Fallback, FallbackKind, HealthCheck, RealServer, Scheduler
from lbconfig.wanted import table as ipvs
from lbconfig.wanted.table import Server, Service, Table, Watched

PROTOCOLS = {"-t": "tcp", "-u": "udp", "-f": "fwm"}
METHODS = {"-m": "masq", "-g": "route", "-i": "tunnel"}


class Kernel:
    """The table as ip_vs keeps it; it refuses what the kernel refuses (exists already, no such service)."""

    def __init__(self, table: Table) -> None:
        self.services = {service.key: service for service in table.services}
        self.servers = {service.key: dict(servers) for service, servers in table.services.items()}

    def table(self) -> dict:
        return {service: self.servers[key] for key, service in self.services.items()}

    def apply(self, line: str) -> tuple:
        """Returns the service key and, for a line about a server, its place."""
        words = line.split(" ")
        verb, option, name = words[:3]
        key = (PROTOCOLS[option], "", int(name)) if option == "-f" else (PROTOCOLS[option], *endpoint(name))
        if verb in ("-A", "-E"):
            assert (key in self.services) == (verb == "-E"), line
            self.services[key] = read_service(key, words[3:])
            self.servers.setdefault(key, {})
            return key, None
        assert key in self.services, line
        if verb == "-D":
            del self.services[key], self.servers[key]
            return key, None
        assert words[3] == "-r", line
        place = endpoint(words[4])
        servers = self.servers[key]
        assert (place in servers) == (verb in ("-e", "-d")), line
        if verb == "-d":
            del servers[place]
        else:
            method, weight_option, weight, *thresholds = words[5:]
            assert weight_option == "-w", line
            assert thresholds[::2] in ([], ["-x", "-y"]), line
            servers[place] = Server(int(weight), METHODS[method], *map(int, thresholds[1::2]))
        return key, place


def read_service(key, words: list[str]) -> Service:
    """As ipvsadm reads it: what is not written is off."""
    words = list(words)
    fields = {}
    while words:
        match words.pop(0):
            case "-s":
                fields["scheduler"] = words.pop(0)
            case "-p":
                fields["persistence"] = int(words.pop(0))
            case "-M":
                mask = words.pop(0)
                fields["prefix"] = ipaddress.ip_network(f"0.0.0.0/{mask}").prefixlen if "." in mask else int(mask)
            case "--pe":
                fields["engine"] = words.pop(0)
            case "-o":
                fields["flags"] = ("ops", *fields.get("flags", ()))
            case "-b":
                fields["flags"] = tuple(sorted((*fields.get("flags", ()), *words.pop(0).split(","))))
            case unknown:
                raise AssertionError(unknown)
    assert ("persistence" in fields) == ("prefix" in fields)
    return Service(*key, **fields)


def endpoint(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return address.strip("[]"), int(port)


places = st.tuples(st.sampled_from([f"10.2.0.{n}" for n in range(1, 6)]), st.sampled_from([80, 81]))
weights = st.sampled_from([0, 0, 1, 2, 100, 65535])
servers = st.dictionaries(places, st.builds(Server, weights, st.sampled_from(["masq", "masq", "route"])), max_size=5)
thresholds = st.sampled_from([(0, 0), (9, 0), (9, 5)])
wanted_servers = st.dictionaries(
    places, st.builds(lambda weight, limits: Server(weight, "masq", *limits), weights, thresholds), max_size=5
)
keys = st.tuples(
    st.sampled_from(["tcp", "udp"]), st.sampled_from(["10.0.2.100", "10.0.2.101"]), st.sampled_from([80, 443])
)
foreign_keys = st.sampled_from([("fwm", "", 7), ("tcp", "2001:db8::1", 80)])


persistence = st.sampled_from(
    [{}, {}, {"persistence": 300, "prefix": 32}, {"persistence": 60, "prefix": 24, "engine": "sip"}]
)
flags = st.sampled_from([{}, {"flags": ("flag-1", "ops")}, {"flags": ("ops",)}, {"flags": ("flag-1", "flag-2")}])
options = st.builds(lambda one, other: {**one, **other}, persistence, flags)


def tables(keys, servers):
    entry = st.tuples(st.sampled_from(["rr", "wlc"]), options, servers)
    return st.dictionaries(keys, entry, max_size=6).map(
        lambda found: Table({Service(*key, name, **more): content for key, (name, more, content) in found.items()})
    )


running_tables = tables(keys | foreign_keys, servers)
checked_services = st.dictionaries(keys, st.builds(Watched, st.none() | places, st.booleans()))


@settings(max_examples=500, deadline=None)
@given(running_tables, tables(keys, wanted_servers), checked_services)
def test_any_table_becomes_the_wanted_one_safely(running, wanted, checked):
    kernel = Kernel(running)
    before = {key: dict(found) for key, found in kernel.servers.items()}
    target = wanted.by_key()
    lines = ipvs.difference(running, wanted, checked)
    for line in lines:
        key, place = kernel.apply(line)
        if key in checked and place in kernel.servers.get(key, {}):
            old = before.get(key, {}).get(place)
            assert (old is not None and old.weight > 0) or kernel.servers[key][place].weight == 0, line
        for key in before.keys() & target.keys():  # never fewer servers than both sides have
            assert before[key].keys() & wanted.services[target[key]].keys() <= kernel.servers[key].keys()
    assert kernel.services == target
    for service, servers in wanted.services.items():
        present = before.get(service.key, {}).keys()
        watched = checked.get(service.key, Watched())
        expected = servers.keys() & present if watched.leaves else servers.keys()
        assert kernel.servers[service.key].keys() == expected | (present & {watched.fallback})
        for place, server in servers.items():
            if place not in expected:
                continue
            old = before.get(service.key, {}).get(place)
            waits = service.key in checked and (old is None or old.weight == 0)
            assert kernel.servers[service.key][place] == dataclasses.replace(
                server, weight=0 if waits else server.weight
            )
    assert ipvs.difference(Table(kernel.table()), wanted, checked) == []


@settings(max_examples=500, deadline=None)
@given(running_tables, tables(keys, wanted_servers), checked_services)
def test_who_leaves_hands_over_first_where_somebody_takes_over(running, wanted, checked):
    changes = ipvs.changes(running, wanted, checked)
    leave = ipvs.taken_over(changes, running)
    ends, kernel = Kernel(running), Kernel(running)
    for change in changes:
        ends.apply(change.line)
    for change in [*(one for one in changes if not one.deletes), *leave]:
        kernel.apply(change.line)
    for service, servers in running.services.items():
        after = ends.servers.get(service.key)
        leaving = [place for place in servers if after is None or place not in after]
        others = after is not None and any(server.weight for server in after.values())
        for place in leaving:
            weight = 0 if others else servers[place].weight
            assert kernel.servers[service.key][place] == dataclasses.replace(servers[place], weight=weight)
        # Nobody is left without a server for it.
        assert not others or any(server.weight for server in kernel.servers[service.key].values())
    for change in changes:
        if change.deletes:
            kernel.apply(change.line)
    assert kernel.table() == ends.table()


@settings(max_examples=300, deadline=None)
@given(running_tables, tables(keys, wanted_servers), checked_services, st.data())
def test_a_service_that_stays_as_it_is_is_not_touched(running, wanted, checked, data):
    if not wanted.services:
        return
    same = data.draw(st.sampled_from(list(wanted.services)))
    # As it runs: some of its servers were found dead and stand at 0, if it is checked.
    content = {
        place: dataclasses.replace(server, weight=0) if same.key in checked and data.draw(st.booleans()) else server
        for place, server in wanted.services[same].items()
    }
    others = {service: found for service, found in running.services.items() if service.key != same.key}
    lines = ipvs.difference(Table({**others, same: content}), wanted, checked)
    name = f"{same.address}:{same.port}"
    option = {"tcp": "-t", "udp": "-u"}[same.protocol]
    assert not [line for line in lines if f" {option} {name}" in line]


def test_the_wish_in_full():
    assert ipvs.render(SAMPLE).splitlines() == [
        "--set 900 120 300",
        "-A -t 10.0.2.100:80 -s wlc",
        "-a -t 10.0.2.100:80 -r 10.2.0.11:8000 -m -w 1",
        "-a -t 10.0.2.100:80 -r 10.2.0.12:8000 -m -w 2",
        "-A -u 10.0.2.100:53 -s rr",
        "-a -u 10.0.2.100:53 -r 10.2.0.11:53 -m -w 1",
    ]


def test_sip_calls_are_balanced_packet_by_packet():
    """All calls of a telephone system come from one port: as one connection they would share a server."""
    dns = SAMPLE.services[1]
    sip = dataclasses.replace(dns, persistence=300, call_id=True)
    [service] = ipvs.wanted(dataclasses.replace(SAMPLE, services=(sip,))).services
    assert (service.engine, service.flags, service.persistence) == ("sip", ("ops",), 300)
    [service] = ipvs.wanted(dataclasses.replace(SAMPLE, services=(dns,))).services
    assert (service.engine, service.flags) == ("", ())


def test_a_disabled_server_is_not_in_the_table():
    [*_, dns] = ipvs.wanted(SAMPLE).services.values()
    assert list(dns) == [("10.2.0.11", 53)]


def test_checked_means_any_check_but_off():
    assert set(ipvs.checked(SAMPLE)) == {("tcp", "10.0.2.100", 80), ("udp", "10.0.2.100", 53)}
    assert set(ipvs.checked(with_service(check=HealthCheck(CheckKind.OFF)))) == {("udp", "10.0.2.100", 53)}


def change(old, new):
    return ipvs.difference(ipvs.wanted(old), ipvs.wanted(new), ipvs.checked(new))


def test_nothing_to_do():
    assert change(SAMPLE, SAMPLE) == []


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"scheduler": Scheduler.RR}, ["-E -t 10.0.2.100:80 -s rr"]),
        (
            {"real_servers": (*WEB.real_servers, RealServer(30, "10.2.0.13", 8000))},
            ["-a -t 10.0.2.100:80 -r 10.2.0.13:8000 -m -w 0"],
        ),
        (
            {
                "real_servers": (*WEB.real_servers, RealServer(30, "10.2.0.13", 8000)),
                "check": HealthCheck(CheckKind.OFF),
            },
            ["-a -t 10.0.2.100:80 -r 10.2.0.13:8000 -m -w 1"],
        ),
        ({"real_servers": WEB.real_servers[1:]}, ["-d -t 10.0.2.100:80 -r 10.2.0.11:8000"]),
        (
            {"real_servers": tuple(dataclasses.replace(server, weight=9) for server in WEB.real_servers)},
            ["-e -t 10.0.2.100:80 -r 10.2.0.11:8000 -m -w 9", "-e -t 10.0.2.100:80 -r 10.2.0.12:8000 -m -w 9"],
        ),
        (
            {"port": 81},
            [
                "-A -t 10.0.2.100:81 -s wlc",
                "-a -t 10.0.2.100:81 -r 10.2.0.11:8000 -m -w 0",
                "-a -t 10.0.2.100:81 -r 10.2.0.12:8000 -m -w 0",
                "-D -t 10.0.2.100:80",
            ],
        ),
    ],
)
def test_only_what_changes_is_written(fields, lines):
    assert change(SAMPLE, with_service(**fields)) == lines


def test_a_server_that_leaves_gets_nothing_new_first():
    running = ipvs.wanted(SAMPLE)
    less = with_service(real_servers=WEB.real_servers[1:])
    [leave] = ipvs.taken_over(ipvs.changes(running, ipvs.wanted(less), ipvs.checked(less)), running)
    assert leave.line == "-e -t 10.0.2.100:80 -r 10.2.0.11:8000 -m -w 0"
    # With nobody to take over, or a server that stands at 0 already, there is nothing to hand over.
    none = with_service(real_servers=(), enabled=True)
    assert ipvs.taken_over(ipvs.changes(running, ipvs.wanted(none), ipvs.checked(none)), running) == []


def test_a_server_that_ldirectord_took_out_stays_out_while_its_weight_is_edited():
    running = ipvs.wanted(SAMPLE)
    web = running.by_key()["tcp", "10.0.2.100", 80]
    dead = {place: Server(0) for place in running.services[web]}
    running = Table({**running.services, web: dead})
    heavier = with_service(real_servers=tuple(dataclasses.replace(server, weight=9) for server in WEB.real_servers))
    assert ipvs.difference(running, ipvs.wanted(heavier), ipvs.checked(heavier)) == []
    unchecked = with_service(check=HealthCheck(CheckKind.OFF))
    assert len(ipvs.difference(running, ipvs.wanted(unchecked), ipvs.checked(unchecked))) == 2


def test_dead_servers_of_a_udp_service_leave_and_ldirectord_brings_them_back():
    more = (*DNS.real_servers, RealServer(30, "10.2.0.13", 53))
    udp = dataclasses.replace(SAMPLE, services=(WEB, dataclasses.replace(DNS, real_servers=more)))
    assert change(SAMPLE, udp) == []
    unchecked = dataclasses.replace(udp.services[1], check=HealthCheck(CheckKind.OFF))
    udp = dataclasses.replace(SAMPLE, services=(WEB, unchecked))
    assert change(SAMPLE, udp) == ["-a -u 10.0.2.100:53 -r 10.2.0.13:53 -m -w 1"]


def test_services_that_are_not_ours_are_removed_by_their_own_names():
    running = Table(
        {Service("fwm", "", 7, "rr"): {}, Service("tcp", "2001:db8::1", 80, "rr"): {("2001:db8::2", 80): Server(1)}}
    )
    assert ipvs.difference(running, Table(), {}) == ["-D -f 7", "-D -t [2001:db8::1]:80"]


PAGE = Fallback(FallbackKind.PAGE)
OTHER = Fallback(FallbackKind.SERVER, "10.2.0.99")


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (PAGE, PAGE, []),
        (OTHER, OTHER, []),
        (PAGE, OTHER, ["-d -t 10.0.2.100:80 -r 10.0.2.100:64503"]),
        (OTHER, Fallback(), ["-d -t 10.0.2.100:80 -r 10.2.0.99:80"]),
    ],
)
def test_a_fallback_server_comes_by_itself_and_goes_with_the_wish_for_it(before, after, lines):
    old = with_service(fallback=before)
    serving = ipvs.wanted(old)
    web = serving.by_key()["tcp", "10.0.2.100", 80]
    place = ipvs.checked(old)[web.key].fallback
    dead = {server: Server(0) for server in serving.services[web]}
    running = Table({**serving.services, web: {**dead, place: Server(1)}})
    new = with_service(fallback=after)
    assert place not in ipvs.wanted(new).services[web]
    assert ipvs.difference(running, ipvs.wanted(new), ipvs.checked(new)) == lines


def test_a_snapshot_without_services():
    empty = dataclasses.replace(SAMPLE, services=())
    assert ipvs.render(empty) == "--set 900 120 300\n"
    assert change(SAMPLE, empty) == ["-D -t 10.0.2.100:80", f"-D -u {DNS.address}:53"]
