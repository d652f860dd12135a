"""Valid snapshots of every kind, the texts as nasty as validation lets through."""

import dataclasses
import functools
import inspect
import os
import re
import string
import zlib
from collections.abc import Callable, Sequence

import lbconfig_certificates as pems
from hypothesis import HealthCheck as Slow
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from lbconfig_firewall import firewalls
from tests import parts

from lbconfig.hardware.facts import Machine
from lbconfig.hardware.settings import TABLE, Tunable
from lbconfig.model import ports as port_lists
from lbconfig.model.addresses import bits
from lbconfig.model.checks import SQL_CHECKS, WEB_CHECKS, without_unused
from lbconfig.model.firewall import Firewall
from lbconfig.model.snapshot import (
    HASHING,
    MAX_REQUESTS,
    THROUGH_THE_BOX,
    Agent,
    AgentKind,
    Bond,
    BondMode,
    Bridge,
    CardChoice,
    CheckKind,
    Fallback,
    FallbackCheck,
    FallbackKind,
    FloodDefence,
    Forwarding,
    HealthCheck,
    HttpMethod,
    Interface,
    LeastHealthy,
    Management,
    Matching,
    Network,
    Policy,
    PolicyRoute,
    Power,
    Protocol,
    RealServer,
    Request,
    Scheduler,
    ServerState,
    SettingChoice,
    Snapshot,
    SorryPage,
    StaticRoute,
    TooFew,
    Tuning,
    VirtualService,
    Vlan,
)
from lbconfig.validate.balance import BY_WEIGHT, MOST_WEIGHT, agent_fields
from lbconfig.validate.fields import MAX_MARK
from lbconfig.validate.services import validate

Test = Callable[..., None]

AUTHORITY = """-----BEGIN CERTIFICATE-----
MIIBcjCCARmgAwIBAgIUTYqEJzzh8hx4USpbYhVUNmYeSn0wCgYIKoZIzj0EAwIw
DjEMMAoGA1UEAwwDTGFiMCAXDTI2MTEyMjA4MzYyMVoYDzIxMjYxMDI5MDgzNjIx
WjAOMQwwCgYDVQQDDANMYWIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAT7q6wu
cr2YnvceD3il1NvErJfRQysTEHKBhyEA5kKN+hM8dJZ/e6Nm+oji67W63vPQUaKf
wCT95lZTBttaRsiqo1MwUTAdBgNVHQ4EFgQUF7Ks8dLBGriCZ0MYVQdEBEM7gxQw
HwYDVR0jBBgwFoAUF7Ks8dLBGriCZ0MYVQdEBEM7gxQwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNHADBEAiBEvYuEViDNEOJPN3ui9W4mE6Zqx3edh1kC6+VZ
qhjquAIgWobA+ysWxQNm1knm6gJNaYpXNQTOEzAxoflmeboTpv0=
-----END CERTIFICATE-----
"""  # valid for a hundred years; nobody has its key

# Each text is drawn in one piece: Hypothesis has room for so many draws only, and a snapshot of services with long
# texts, drawn letter by letter or by a pattern, would rarely fit.
LETTERS = string.ascii_letters + string.digits
NASTY = '"#\\$@{}(?|%`] \xe9\u4f60\U0001f600'
IN_NAMES = f"{LETTERS}\xe4\xdf\u0416\u4f60\U00020000 ._-"
names = st.text(IN_NAMES, max_size=64).map(lambda text: text.strip().lstrip(" ._-") or "1")
paths = st.text(f"{LETTERS}._~!$&'()*+,;=:@%/?-", max_size=60).map("/{}".format)
hosts = st.sampled_from(["", "a", "www.example.org", "xn--9ca.example", "1-2.3", "a_b.org:8080", "sh\xf6p.example:1"])
printable = st.characters(exclude_categories=("C", "Z"))
texts = st.text(NASTY + string.ascii_letters, max_size=30) | st.text(printable, max_size=50)
some_texts = texts.filter(bool)
ports = st.integers(1, 65535)
checks = st.builds(
    HealthCheck,
    st.sampled_from(CheckKind),
    st.just(0) | ports,
    paths,
    hosts,
    texts,
    st.integers(1, 3600),
    st.integers(1, 60),
    st.integers(1, 100),
    st.sampled_from([1, 1, 3, 100]),
    st.sampled_from([0, 0, 1, 3600]),
    texts,
    texts,
    some_texts,
    texts,
    texts,
    st.booleans(),
    st.sampled_from(["", AUTHORITY]),
    st.integers(0, 100),
    st.sampled_from(HttpMethod),
    st.sampled_from(["", "", "200-299,401", "204", "200-599"]),
    st.sampled_from(Matching),
    st.booleans(),
    texts.map(lambda text: f"#!/bin/sh\n\techo {text}\nexit 0\n"),
    st.just(()) | st.lists(st.builds(Request, paths, texts.map(str.strip)), max_size=MAX_REQUESTS).map(tuple),
)
vips = {
    4: st.sampled_from([f"10.0.2.{n}" for n in range(100, 104)] + ["198.51.100.7", "10.0.2.15"]),
    6: st.sampled_from([f"2001:db8:1::{n:x}" for n in range(0x100, 0x104)] + ["2001:db8:1::15"]),
}
rips = {
    4: st.sampled_from([f"10.2.0.{n}" for n in range(11, 20)] + ["203.0.113.9"]),
    6: st.sampled_from([f"2001:db8:2::{n:x}" for n in range(0x11, 0x20)]),
}
spare = {4: st.just("10.2.0.99"), 6: st.just("2001:db8:2::99")}


def possible(service: VirtualService) -> VirtualService:
    """Without the options that it cannot have."""
    hashing, udp = service.scheduler in HASHING, service.protocol is Protocol.UDP
    one_packet = service.one_packet and udp
    call_id = service.call_id and udp and service.persistence > 0
    own = any(first <= service.port <= last for first, last in port_lists.parse(service.more_ports))
    service = dataclasses.replace(
        service,
        hash_port=service.hash_port and hashing,
        hash_next=service.hash_next and hashing,
        one_packet=one_packet,
        persistence=0 if one_packet and not call_id else service.persistence,
        call_id=call_id,
        persistence_prefix=min(service.persistence_prefix, bits(service.address)),
        more_ports="" if own else service.more_ports,
        more_addresses=tuple(vip for vip in service.more_addresses if vip != service.address),
    )
    if service.by_mark:
        service = dataclasses.replace(service, id=service.id % MAX_MARK + 1)
    service = dataclasses.replace(service, fallback=possible_fallback(service))
    found = [dataclasses.replace(one, port=possible_port(service, one)) for one in service.real_servers]
    places = {(one.address, one.port): one for one in found}
    service = dataclasses.replace(service, check=possible_check(service), real_servers=tuple(places.values()))
    return possible_balance(service)


def possible_balance(service: VirtualService) -> VirtualService:
    off = service.check.kind is CheckKind.OFF
    agent = service.agent
    if off or service.scheduler not in BY_WEIGHT:
        service = dataclasses.replace(service, agent=Agent(), slow_start=0)
    else:
        used = {name: getattr(agent, name) for name in agent_fields(agent.kind)}
        service = dataclasses.replace(service, agent=Agent(agent.kind, **used))
    servers = service.real_servers
    if service.weighed:
        servers = tuple(dataclasses.replace(one, weight=one.weight % MOST_WEIGHT + 1) for one in servers)
    there, least = sum(one.in_table for one in servers), service.least_healthy
    if off or not 0 < least.servers <= there:
        least = LeastHealthy()
    elif least.then is not TooFew.ASIDE or not least.servers <= least.again <= there:
        least = dataclasses.replace(least, again=0)
    return dataclasses.replace(service, real_servers=servers, least_healthy=least)


def possible_check(service: VirtualService) -> HealthCheck:
    check = service.check
    if "tcp" not in service.protocol.parts:
        check = dataclasses.replace(check, port=check.port or 8080)
    if check.matching.by_pattern:
        check = dataclasses.replace(check, expect=re.escape(check.expect) if check.expect.isascii() else "(a|b)\\.$")
    if (check.kind is CheckKind.SIMPLETCP and check.matching.lacks) or check.method is HttpMethod.HEAD:
        check = dataclasses.replace(check, matching=Matching.CONTAINS)
    check = without_unused(check)
    if check.kind in SQL_CHECKS and not check.login:
        return dataclasses.replace(check, login="kim")
    if check.kind is CheckKind.DNS:
        return dataclasses.replace(check, expect="2001:db8::7" if check.expect else "")
    if check.kind in WEB_CHECKS:
        check = dataclasses.replace(check, login=check.login.replace(":", ""))
        if check.method is HttpMethod.HEAD:
            paths_alone = tuple(Request(one.path) for one in check.more_requests)
            return dataclasses.replace(check, expect="", more_requests=paths_alone)
    return check


def possible_fallback(service: VirtualService) -> Fallback:
    fallback = service.fallback
    page_for_others = fallback.kind is FallbackKind.PAGE and service.protocol is not Protocol.TCP
    if service.check.kind is CheckKind.OFF or page_for_others:
        return Fallback()
    if fallback.kind is not FallbackKind.SERVER:
        return Fallback(fallback.kind)
    if fallback.check is FallbackCheck.CONNECT and "tcp" not in service.protocol.parts:
        fallback = dataclasses.replace(fallback, check=FallbackCheck.SAME)
    keeps_port = service.forwarding not in THROUGH_THE_BOX
    return dataclasses.replace(fallback, port=0) if keeps_port else fallback


def possible_port(service: VirtualService, server: RealServer) -> int:
    if service.by_mark:
        return 0
    return server.port if service.forwarding_of(server) in THROUGH_THE_BOX else service.port


agents = st.just(Agent()) | st.builds(
    Agent, st.sampled_from(AgentKind), st.integers(1, 65535), st.integers(2, 60), st.integers(10, 100)
)
rarely = st.sampled_from([False, False, False, True])
ids = st.integers(1, 2**53 - 1)
forwardings = st.sampled_from(Forwarding)


def servers(version: int) -> st.SearchStrategy[list[RealServer]]:
    return st.lists(
        st.builds(
            lambda *words, thresholds, forwarding, name: RealServer(*words, *thresholds, forwarding, name),
            ids,
            rips[version],
            ports,
            st.integers(1, 65535),
            st.sampled_from(ServerState),
            thresholds=st.sampled_from([(0, 0), (100, 0), (100, 80), (2**31 - 1, 2**31 - 1)]),
            forwarding=st.none() | st.none() | forwardings,
            name=st.just("") | names,
        ),
        max_size=5,
    )


def service_of(version: int) -> st.SearchStrategy[VirtualService]:
    return st.builds(
        VirtualService,
        ids,
        names,
        vips[version],
        ports,
        st.sampled_from(Protocol),
        st.sampled_from(Scheduler),
        forwardings,
        check=checks,
        real_servers=servers(version).map(tuple),
        enabled=st.sampled_from([True, True, True, False]),
        fallback=st.builds(
            Fallback, st.sampled_from(FallbackKind), spare[version], ports, st.sampled_from(FallbackCheck)
        ),
        note=texts,
        hash_port=rarely,
        hash_next=rarely,
        persistence=st.sampled_from([0, 0, 1, 300, 31 * 24 * 3600]),
        persistence_prefix=st.integers(0, 128),
        one_packet=rarely,
        call_id=rarely,
        more_ports=st.sampled_from(["", "", "", "443", "5000-5100,6000", "1-1023", "65535"]),
        more_addresses=st.just(()) | st.lists(vips[version], max_size=2, unique=True).map(tuple),
        agent=agents,
        slow_start=st.sampled_from([0, 0, 0, 1, 600]),
        least_healthy=st.builds(LeastHealthy, st.integers(0, 3), st.sampled_from(TooFew), st.integers(0, 5)),
    ).map(possible)


# Made once: a strategy that is made for each draw is checked and looked through again by Hypothesis each time.
service_by_version = {version: service_of(version) for version in (4, 6)}
services = st.lists(st.sampled_from([4, 4, 6]).flatmap(service_by_version.__getitem__), max_size=5)
interface_names = st.text(f"{LETTERS}._-", max_size=13).map("e{}".format)
networks = st.builds(
    lambda one, two, dhcp, gateway, gateway6: Network(
        "lb",
        gateway,
        (
            Interface(one, dhcp, ("10.0.2.15/24", "2001:db8:1::15/64")),
            Interface(two if two != one else f"{two}2", not dhcp, ("10.2.0.1/24", "2001:db8:2::1/64")),
        ),
        gateway6,
    ),
    interface_names,
    interface_names,
    st.booleans(),
    st.sampled_from(["", "10.0.2.2"]),
    st.sampled_from(["", "2001:db8:1::1"]),
)


def made(network: Network, number: int) -> tuple[Interface, ...]:
    """Interfaces over cards that nobody else has; the names are as nasty as those of cards."""
    bond = Interface(f"b{number}._-", bond=Bond(("x1", "x2"), list(BondMode)[number % len(BondMode)]))
    bridge = Interface("br", addresses=("172.20.0.1/24", "2001:db8:20::1/64"), mtu=1400, bridge=Bridge(("x3",), True))
    vlan = Interface("v-1", number == 2, vlan=Vlan(network.interfaces[0].name, number + 1), note="\u4f60\"';#")
    return tuple(one for one in (bond, bridge, vlan) if one.name not in {card.name for card in network.interfaces})


def of_every_kind(network: Network, number: int, more: bool) -> Network:
    """Every other one with VLANs, bonds, bridges, routes, names and time."""
    if not more:
        return network
    return dataclasses.replace(
        network,
        interfaces=(*network.interfaces, *made(network, number)),
        routes=(
            StaticRoute("203.0.113.0/24", "10.2.0.9"),
            StaticRoute("2001:db8:9::/48", "2001:db8:2::9", metric=number),
        ),
        policies=(PolicyRoute("10.0.2.100", "10.2.0.9"), PolicyRoute("2001:db8:1::100", "2001:db8:2::9")),
        dns=("10.0.2.3", "2001:db8:1::3"),
        search=("example.org",),
        ntp=("ntp.example.org", "10.0.2.4"),
    )


networks = st.builds(of_every_kind, networks, st.integers(0, 6), st.booleans())
allows = st.lists(
    st.sampled_from(["0.0.0.0/0", "10.0.0.0/8", "10.0.2.0/24", "10.128.0.0/9", "192.0.2.1/32", "192.0.2.0/31"])
    | st.sampled_from(["::/0", "2001:db8::/32", "2001:db8:1::/48", "fd00::1/128"]),
    min_size=1,
    unique=True,
).map(tuple)
page_keys = st.sampled_from(
    [("", "")] * 3 + [(pems.LB, pems.LB_KEY), (pems.LB + pems.ROOT, pems.LB_KEY_OF_EC), (pems.RSA, pems.RSA_KEY)]
)
accesses = st.builds(
    lambda allow, port, page_key, interfaces: Management(allow, port, *page_key, interfaces),
    allows,
    st.sampled_from([443, 443, 81, 8443, 32767, 65535]),
    page_keys,
    st.sampled_from([(), (), ("up0",)]),
)
sorry_pages = st.builds(SorryPage, some_texts, st.lists(texts.filter(bool), max_size=3).map(tuple))
seconds = st.integers(1, 31 * 24 * 3600)
policies = st.builds(Policy, seconds, seconds, seconds, *[st.booleans()] * 6, st.sampled_from(FloodDefence))


def by_its_interfaces(firewall: Firewall, network: Network) -> Firewall:
    """The rules are drawn for up0 and down0."""
    names = {"": "", "up0": network.interfaces[0].name, "down0": network.interfaces[1].name}
    return Firewall(tuple(dataclasses.replace(rule, interface=names[rule.interface]) for rule in firewall.rules))


def beside_each_other(services: list[VirtualService], network: Network, *others, firewall: Firewall) -> Snapshot:
    """All of them but those that clash with one before: an id, a name, a place."""
    snapshot = Snapshot((), network, *others, by_its_interfaces(firewall, network))
    assert not validate(snapshot)
    together = dataclasses.replace(snapshot, services=tuple(services))
    if not validate(together):
        return together
    for service in services:
        more = dataclasses.replace(snapshot, services=(*snapshot.services, service))
        snapshot = snapshot if validate(more) else more
    return snapshot


def answering(snapshot: Snapshot) -> Snapshot:
    """Source-based routes need it."""
    again = snapshot.policy.route_answers or bool(snapshot.network.policies)
    return dataclasses.replace(snapshot, policy=dataclasses.replace(snapshot.policy, route_answers=again))


def on_its_interfaces(snapshot: Snapshot) -> Snapshot:
    """The web page, too, is drawn for up0."""
    network, management = snapshot.network, snapshot.management
    usable = [one.name for one in network.interfaces if one.name in network.entrances and (one.dhcp or one.addresses)]
    chosen = tuple(usable[:1]) if management.interfaces else ()
    return dataclasses.replace(snapshot, management=dataclasses.replace(management, interfaces=chosen))


def whole(services: list[VirtualService], *others, firewall: Firewall) -> Snapshot:
    *others, tuning = others
    bare = on_its_interfaces(answering(Snapshot((), *others)))
    found = beside_each_other(services, bare.network, bare.management, bare.sorry, bare.policy, firewall=firewall)
    return dataclasses.replace(found, tuning=tuning)


def choice_of(row: Tunable) -> st.SearchStrategy[SettingChoice]:
    numbers = len(row.value(Machine((), 1024)))
    return st.integers(row.lowest, row.highest).map(
        lambda number: SettingChoice(row.key, " ".join([str(number)] * numbers))
    )


choices = st.one_of(*map(choice_of, TABLE))
cards = st.builds(
    CardChoice, st.sampled_from(["eth0", "up0", "down0"]), st.integers(0, 256), st.integers(0, 65_536), st.just(0)
)
tunings = st.builds(
    Tuning,
    st.lists(choices, max_size=4, unique_by=lambda one: one.key).map(tuple),
    st.lists(cards, max_size=2, unique_by=lambda one: one.name).map(tuple),
    st.booleans(),
    st.sampled_from(Power),
)
snapshots = st.builds(
    whole, services, networks, accesses, sorry_pages, policies, tunings, firewall=firewalls(["up0", "down0"], 4)
)


def examples(usual: int) -> int:
    """How many a test takes that asks the programs themselves: make random-snapshots COUNT=10000."""
    return int(os.environ.get("FAIRLEAD_SNAPSHOTS") or usual)


def drawn(count: int) -> list[Snapshot]:
    """So many, for what takes them in batches. Nothing is made smaller where one of them fails."""
    found: list[Snapshot] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(Slow),
        derandomize=not parts.ANEW,
    )
    @given(snapshots)
    def draw(snapshot: Snapshot) -> None:
        found.append(snapshot)

    draw()
    return found


SHARED = 200


@functools.cache
def _shared() -> list[Snapshot]:
    return list(dict.fromkeys(drawn(SHARED)))


def _some_of(shared: list[Snapshot], test: str, count: int) -> list[Snapshot]:
    """So many, from a place on that the name of the test decides: several tests see all of them."""
    assert count <= len(shared)
    first = zlib.crc32(test.encode()) % len(shared)
    return [*shared[first:], *shared[:first]][:count]


def of_snapshots(count: int, together: int = 1, first: Sequence[Snapshot] = ()) -> Callable[[Test], Test]:
    """Try a test on so many snapshots, or pairs of them; they are its last parameters.

    `make test` draws them once for all tests of a process, as drawing takes longer than most of what is shown with
    them (docs/decisions/0117). Wherever examples are drawn anew, each test draws its own. `first`: tried before them.
    """

    def decorate(test: Test) -> Test:
        if parts.ANEW:
            test = given(*[snapshots] * together)(test)
            for one in first:
                test = example(*[one] * together)(test)
            return settings(max_examples=count, deadline=None, suppress_health_check=list(Slow))(test)

        parameters = [*inspect.signature(test).parameters.values()]
        others, names = parameters[:-together], [one.name for one in parameters[-together:]]

        @functools.wraps(test)
        def of_each(**fixtures: object) -> None:
            found = [*first, *_some_of(_shared(), test.__name__, count)]
            for place in range(len(found)):
                some = {name: found[place - back] for back, name in enumerate(names)}
                try:
                    test(**fixtures, **some)
                except Exception as error:
                    error.add_note(f"with {some}")
                    raise

        of_each.__signature__ = inspect.Signature(others)
        return of_each

    return decorate
