"""Valid snapshots of every kind, the texts as nasty as validation lets through."""

import string

from hypothesis import strategies as st

from lbconfig.snapshot import (
    CheckKind,
    HealthCheck,
    Interface,
    Management,
    Network,
    Protocol,
    RealServer,
    Scheduler,
    Snapshot,
    VirtualService,
)
from lbconfig.validate import validate

names = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9 ._-]{0,62}[A-Za-z0-9._-])?", fullmatch=True)
paths = st.from_regex(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{0,60}", fullmatch=True)
hosts = st.just("") | st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z]{2,9})?", fullmatch=True)
nasty = st.sampled_from(
    ['"', "#", "\\", "$", "@", "{", "}", "(?{", "|", "\xe9", "\u4f60", "\U0001f600", "%", "`", " ", "]"]
)
texts = st.lists(nasty | st.sampled_from(string.ascii_letters), max_size=30).map("".join) | st.text(max_size=50).filter(
    str.isprintable
)
ports = st.integers(1, 65535)
checks = st.builds(
    HealthCheck,
    st.sampled_from(CheckKind),
    st.integers(0, 65535),
    paths,
    hosts,
    texts,
    st.integers(1, 3600),
    st.integers(1, 60),
    st.integers(1, 100),
)
vips = st.sampled_from([f"10.0.2.{n}" for n in range(100, 104)] + ["198.51.100.7", "10.0.2.15"])
rips = st.sampled_from([f"10.2.0.{n}" for n in range(11, 20)] + ["203.0.113.9"])
ids = st.integers(1, 2**53 - 1)
servers = st.lists(st.builds(RealServer, ids, rips, ports, st.integers(1, 65535), st.booleans()), max_size=5)
services = st.lists(
    st.builds(
        VirtualService,
        ids,
        names,
        vips,
        ports,
        st.sampled_from(Protocol),
        st.sampled_from(Scheduler),
        check=checks,
        real_servers=servers.map(tuple),
    ),
    max_size=5,
)
interface_names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}", fullmatch=True)
networks = st.builds(
    lambda one, two, dhcp, gateway: Network(
        "lb", gateway, (Interface(one, dhcp, ("10.0.2.15/24",)), Interface(two, not dhcp, ("10.2.0.1/24",)))
    ),
    interface_names,
    interface_names,
    st.booleans(),
    st.sampled_from(["", "10.0.2.2"]),
)
allows = st.lists(
    st.sampled_from(["0.0.0.0/0", "10.0.0.0/8", "10.0.2.0/24", "10.128.0.0/9", "192.0.2.1/32", "192.0.2.0/31"]),
    min_size=1,
    unique=True,
).map(lambda networks: Management(tuple(networks)))
snapshots = st.builds(Snapshot, services.map(tuple), networks, allows).filter(lambda snapshot: not validate(snapshot))
