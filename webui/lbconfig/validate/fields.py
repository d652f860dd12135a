"""The rules for single values: each returns a sentence, or None where the value is good."""

from __future__ import annotations

import ipaddress
import re
import ssl
import warnings

from lbconfig.model.addresses import IPAddress, IPNetwork, kept_by_text, parse_address, parse_interface, parse_network
from lbconfig.model.problem import number, quote, written_as
from lbconfig.model.snapshot import MAX_LINES, SORRY_PORT
from lbconfig.model.spelling import ascii_name, letters_only

MAX_NAME = 64
MAX_TEXT = 200  # path, expected text
MAX_NOTE = 500
MAX_TAGS = 10
MAX_TAG = 32
MAX_CERTIFICATES = MAX_LINES  # characters; one has about 2,000
MAX_TITLE = 100
MAX_PARAGRAPHS = 20
MAX_PERSISTENCE = 31 * 24 * 3600  # seconds; ipvsadm's own bound (ipvsadm.c: MAX_TIMEOUT)
MAX_CONNECTIONS = 2**31 - 1  # what ipvsadm takes for a threshold
MAX_MARK = 2**31 - 1  # a firewall mark has 32 bits; ipvsadm reads it with a sign
MAX_ID = 2**53 - 1  # what JavaScript and every JSON reader keep exactly

NO_INTERFACE = "is not an interface of this box"  # behind its name
INTERFACE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")
# As names in DNS, and with underscores, which web servers take.
SITE = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*"
)
STATUSES = re.compile(r"([2-5][0-9]{2})(?:-([2-5][0-9]{2}))?")
PATH = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*")
LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_RESERVED_INTERFACES = frozenset({"lo", "all", "default"})  # the last two are folders of /proc/sys/net/ipv4/conf


def in_range(value: int, low: int, high: int) -> str | None:
    return None if low <= value <= high else f"must be {low} to {high}, not {number(value)}"


def given_twice(entry: object) -> str:
    """What is wrong with an entry that a list has already."""
    return f"{entry} is given twice"


def ip_address(text: str) -> str | None:
    """Any IPv4 or IPv6 address, in the one spelling that programs print."""
    try:
        address = parse_address(text)
    except ValueError:
        return f"must be an IP address such as 192.0.2.10 or 2001:db8::10, not {quote(text)}"
    return None if str(address) == text else written_as(address)


@kept_by_text
def host_address(text: str) -> str | None:
    """An IPv4 or IPv6 address that one machine can have, in the one spelling that programs print."""
    try:
        address = parse_address(text)
    except ValueError:
        return ip_address(text)
    for network, words in _NO_HOSTS:
        if address.version == network.version and address in network:
            return f"must be the address of one host, and {address} is {words}"
    return ip_address(text)


def server_address(text: str) -> str | None:
    """The address of a machine that the box may ask and send clients to."""
    sentence = host_address(text)
    if sentence is None and parse_address(text).is_link_local:
        return f"must be the address of one host, and {text} is a link-local address, which is not unique"
    return sentence


_NO_HOSTS = tuple(
    (parse_network(network), words)
    for network, words in (
        ("0.0.0.0/8", "in a network that no host can use"),
        ("127.0.0.0/8", "a loopback address"),
        ("224.0.0.0/4", "a multicast address"),
        ("255.255.255.255/32", "the broadcast address"),
        ("240.0.0.0/4", "in a range that is reserved"),
        ("::/128", "no address"),
        ("::1/128", "a loopback address"),
        ("::ffff:0:0/96", "an IPv4-mapped address"),
        ("fe80::/10", "a link-local address, which is not unique"),
        ("ff00::/8", "a multicast address"),
    )
)


def service_name(text: str) -> str | None:
    if 1 <= len(text) <= MAX_NAME and letters_only(text) and text[0].isalnum() and text[-1] != " ":
        return None
    return (
        f"must be 1 to {MAX_NAME} letters, digits, spaces, dots, underscores or hyphens, begin with "
        f"a letter or digit and not end with a space; {quote(text)} is not"
    )


def is_dns_name(text: str, longest: int) -> bool:
    """Labels as in RFC 1123, joined by dots."""
    return len(text) <= longest and all(LABEL.fullmatch(label) for label in text.split("."))


def url_path(text: str) -> str | None:
    if len(text) > MAX_TEXT:
        return f"must not be longer than {MAX_TEXT} characters, and has {len(text)}"
    if PATH.fullmatch(text):
        return None
    return f"must begin with / and consist of characters of a URL (others as %XX, no #), not {quote(text)}"


def note(text: str) -> str | None:
    if len(text) > MAX_NOTE:
        return f"must not be longer than {MAX_NOTE} characters, and has {len(text)}"
    return None if text.isprintable() else "must be printable text on one line"


def tags(words: tuple[str, ...]) -> str | None:
    if len(words) > MAX_TAGS:
        return f"must not be more than {MAX_TAGS}"
    for tag in words:
        if not 1 <= len(tag) <= MAX_TAG or not letters_only(tag):
            return (
                f"must be 1 to {MAX_TAG} letters, digits, blanks, dots, underscores and hyphens each, not {quote(tag)}"
            )
    return "must not contain one twice" if len(set(words)) < len(words) else None


def title(text: str) -> str | None:
    if not 1 <= len(text) <= MAX_TITLE:
        return f"must have 1 to {MAX_TITLE} characters, and has {len(text)}"
    return None if text.isprintable() else "must be printable text on one line"


def paragraphs(texts: tuple[str, ...]) -> str | None:
    if len(texts) > MAX_PARAGRAPHS:
        return f"must not have more than {MAX_PARAGRAPHS} paragraphs, and has {len(texts)}"
    for text in texts:
        if not 1 <= len(text) <= MAX_NOTE or not text.isprintable():
            return f"must have paragraphs of 1 to {MAX_NOTE} characters that can be printed, not {quote(text)}"
    return None


def expected_text(text: str) -> str | None:
    if len(text) > MAX_TEXT:
        return f"must not be longer than {MAX_TEXT} characters, and has {len(text)}"
    return None if text.isprintable() else "must be printable text on one line"


def pattern(text: str) -> str | None:
    """A regular expression that means the same to Perl, which runs it, and to Python, which can tell that it is one."""
    if sentence := expected_text(text):
        return sentence
    if not text.isascii():
        return "must be a regular expression of ASCII characters; others are looked for without a pattern"
    unknown = next((one[0] for one in _ESCAPE.finditer(text) if one[1].isalnum() and one[1] not in _ESCAPES), None)
    odd = _ODD_GROUP.search(text)
    if unknown := unknown or (odd and odd[0]):
        return f"must be a regular expression without {quote(unknown)}, which is not known here"
    try:
        with warnings.catch_warnings(action="error"):
            re.compile(text)
    except (re.error, OverflowError, FutureWarning) as error:
        return f"must be a regular expression, not {quote(text)}: {error}"
    return None


_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = frozenset("dDwWsSbBnrtfAx123456789")
_ODD_GROUP = re.compile(r"\(\?(?!:|=|!|<=|<!|[ims]+\)).{0,2}")


_RUNS = ("/bin/sh", "/usr/bin/perl", "/usr/bin/python3")  # both images have these
INTERPRETERS = (*_RUNS, *(f"/usr/bin/env {one.rpartition('/')[2]}" for one in _RUNS))


def program(text: str) -> str | None:
    """A script that the box can run."""
    first, _, rest = text.partition("\n")
    if not first.startswith("#!"):
        return "must begin with a line such as #!/bin/sh, which names what runs it"
    words = " ".join(first[2:].split())
    if not any(words == one or words.startswith(f"{one} ") for one in INTERPRETERS):
        return f"must be run by {', '.join(INTERPRETERS)}: the box has nothing else, not {quote(words)}"
    return None if rest.strip() else "must have more than its first line"


def certificates(text: str) -> str | None:
    """Certificates in PEM, or nothing."""
    if len(text) > MAX_CERTIFICATES:
        return f"must not be longer than {MAX_CERTIFICATES} characters, and has {len(text)}"
    if not text:
        return None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError, TypeError):
        return "must be certificates in PEM: from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----"
    return None


def web_port(port: int) -> str | None:
    """The TCP port at which a browser finds the web UI."""
    if sentence := in_range(port, 1, 65535):
        return sentence
    if port == 80:
        return "must not be 80: browsers speak HTTP there, and the web page is HTTPS only"
    if port == SORRY_PORT:
        return f"must not be {port}: it is the port of the sorry page"
    if port in _GIVEN_AWAY:
        return f"must not be {_GIVEN_AWAY[0]} to {_GIVEN_AWAY[-1]}: the box takes these for connections of its own"
    return f"must not be {port}: browsers open no page there" if port in _REFUSED_BY_BROWSERS else None


_GIVEN_AWAY = range(32768, 60999 + 1)  # the kernel's net.ipv4.ip_local_port_range; it may be in use at any time
# The "bad ports" of https://fetch.spec.whatwg.org/#port-blocking; whoever moved the page there would not see it again.
_REFUSED_BY_BROWSERS = frozenset(
    (
        *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104),
        *(109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515),
        *(526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049),
        *(3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
    )
)


def interface_name(name: str) -> str | None:
    if not INTERFACE_NAME.fullmatch(name):
        return f"must be 1 to 15 letters, digits, dots, underscores or hyphens, not {quote(name)}"
    return f"{name!r} cannot be configured" if name in _RESERVED_INTERFACES else None


@kept_by_text
def interface_address(text: str) -> str | None:
    form = f"must be an IP address with its prefix length, such as 192.0.2.10/24 or 2001:db8::10/64, not {quote(text)}"
    host, slash, _ = text.partition("/")
    try:
        address = parse_interface(text)
    except ValueError:
        return form
    if not slash:
        return form
    if sentence := host_address(host):
        return sentence
    if str(address) != text:
        return form
    network = address.network
    shortest, longest = _PREFIX_LENGTHS[network.version]
    if not shortest <= network.prefixlen <= longest:
        return f"must have a prefix length of {shortest} to {longest}, not {network.prefixlen}"
    return not_a_host(network, address.ip)


_PREFIX_LENGTHS = {4: (8, 32), 6: (16, 128)}


def not_a_host(network: IPNetwork, address: IPAddress) -> str | None:
    """An address of the network that no machine can have; it may be of another version."""
    if address.version != network.version or network.prefixlen >= network.max_prefixlen - 1:
        return None
    kinds = {network.network_address: "network"}
    if network.version == 4:
        kinds[network.broadcast_address] = "broadcast"
    if address in kinds:
        return f"must be the address of one host, and {address} is the {kinds[address]} address of {network}"
    return None


def allowed_network(text: str) -> str | None:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return f"must be networks such as 192.0.2.0/24 or 2001:db8::/32, not {quote(text)}"
    if str(network) != text:
        return f"must be a network with its prefix length; {quote(text)} is probably meant to be {network}"
    return None


def router_address(text: str, link_local: bool) -> str | None:
    """Who forwards packets for us; `link_local`: the interface is named, so fe80:: is one router alone."""
    try:
        local = parse_address(text).is_link_local and ":" in text and "%" not in text
    except ValueError:
        local = False
    if not local:
        return host_address(text)
    if not link_local:
        return f"{text} is a link-local address: name the interface that it is on"
    return ip_address(text)


def host_header(text: str) -> str | None:
    """The name of a web site, perhaps with a port, or nothing."""
    name, colon, port = text.partition(":")
    if colon and not (port.isascii() and port.isdecimal() and len(port) <= 5 and 1 <= int(port) <= 65535):
        return f"must be a name, or a name and a port such as www.example.org:8080, not {quote(text)}"
    if text == "" or SITE.fullmatch(ascii_name(name)):
        return None
    return f"must be the name of a web site, such as www.example.org, or empty, not {quote(text)}"


def statuses(text: str) -> str | None:
    """Codes and ranges of codes of HTTP, or nothing."""
    parts = [STATUSES.fullmatch(part) for part in text.split(",")] if text else []
    if len(text) <= MAX_TEXT and all(one and int(one[1]) <= int(one[2] or one[1]) for one in parts):
        return None
    return f"must be status codes from 200 to 599, such as 200-299,401, or empty for 200-299, not {quote(text)}"


def host_or_name(text: str) -> str | None:
    """An address, or a name that DNS knows."""
    if is_dns_name(text, 253) and not text.replace(".", "").isdigit():
        return None
    return None if host_address(text) is None else f"must be an address or a DNS name, not {quote(text)}"
