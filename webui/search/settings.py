"""Pages and settings that can be found. A setting has the words of its form; only other words for it are here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from django import forms
from django.conf import settings
from django.urls import reverse
from django.utils.html import strip_tags

from accounts.forms import ChangePasswordForm
from api.forms import TokenForm
from balancing.forms import RealServerForm, ServiceForm
from balancing.policy import PolicyForm
from balancing.sorry import SorryForm
from changes.forms import CommentForm, ImportForm, KeepingForm
from firewall.forms import PacketForm, RuleForm
from guide import book
from network.certificate_form import CertificateForm
from network.forms import AccessForm, InterfaceForm, NetworkForm
from network.route_forms import NamesForm, RouteForm
from search.entries import Entry
from system.forms import BetweenForm, JoinForm, PassphraseForm, ResetForm, RestoreForm, WatchForm
from system.tuning import TuningForm

PAGE_WEIGHT = 3  # a page before the settings on it


@dataclass(frozen=True)
class Place:
    """A page of the web UI: what it is called, and other words by which it is looked for."""

    title: str
    words: str = ""


@dataclass(frozen=True)
class Shown:
    """A form on a page. `loose`: fields that the page does not always show, so there is no place on it to go to."""

    form: type[forms.Form]
    page: str
    prefix: str = ""
    where: str = ""  # "": the page's title
    loose: frozenset[str] = frozenset()

    def entries(self) -> Iterator[Entry]:
        where = self.where or PLACES[self.page].title
        for name, field in self._fields().items():
            if field.widget.is_hidden:
                continue
            anchor = "" if name in self.loose or "*" in self.loose else f"#at-id_{self.prefix}{name}"
            yield Entry(
                str(field.label or name.capitalize()),
                reverse(self.page) + anchor,
                where,
                f"{name.replace('_', ' ')} {OTHER_WORDS.get(f'{self.form.__name__}.{name}', '')}",
                # Of the form itself: a new one may offer what the draft has at the moment, as names of interfaces.
                " ".join((str(field.help_text), *_choices(self.form.base_fields.get(name, field)))),
            )

    def _fields(self) -> dict[str, forms.Field]:
        """Those of a new form, as some forms make fields for what they are about."""
        made = self.form.__new__(self.form)
        try:
            made.__init__()  # type: ignore[misc]
        except TypeError:  # it wants to be told something first; its own fields will do
            return self.form.base_fields
        return made.fields


def _choices(field: forms.Field) -> Iterator[str]:
    if isinstance(field, forms.ChoiceField):
        for value, label in cast("list[tuple[str, str]]", field.choices):
            yield f"{label} {getattr(field, 'sentences', {}).get(value, '')}"


PLACES = {
    "overview": Place("Overview", "home dashboard status load virtual services real servers up down trouble"),
    "service-add": Place("Add a virtual service", "VIP load balance cluster pool frontend listener"),
    "policy": Place("Connections", "timeouts connection table SYN flood DoS TCP UDP ICMP failover"),
    "sorry": Place("Sorry page", "maintenance page fallback failover outage"),
    "network": Place("Network", "interfaces NIC VLAN bond bridge LACP MTU IP address DHCP gateway host name"),
    "routes": Place("Routes", "static route source-based policy routing default gateway provider"),
    "names": Place("Names and time", "DNS NTP clock resolver"),
    "access": Place("Access", "who may open the web page allow list management port lock out HTTPS"),
    "certificate": Place("Certificate", "TLS SSL HTTPS private key PEM"),
    "firewall": Place("Firewall", "rules nftables iptables allow deny block drop port forwarding NAT masquerade"),
    "rule-add": Place("Add a firewall rule", "allow deny block drop open a port iptables nftables"),
    "firewall-test": Place("Try a packet", "test firewall rules simulate trace blocked"),
    "review": Place("Review changes", "apply draft pending commit save activate difference"),
    "discard": Place("Discard draft", "undo revert cancel changes"),
    "history": Place("History", "revisions undo roll back revert compare audit log who changed"),
    "transfer": Place("Import and export", "configuration JSON copy download upload"),
    "drift": Place("Does the box run what it should?", "drift differences repair"),
    "system": Place("System", "version uptime restart reboot shut down power off about database copies"),
    "hardware": Place("Hardware", "findings NIC CPU interrupts queues IRQ performance slow"),
    "tuning": Place("Hardware settings", "sysctl kernel tuning ring buffer queues RPS RSS interrupts power"),
    "capacity": Place("Capacity", "load limit benchmark throughput packets measure performance"),
    "pair": Place("Pair", "HA high availability failover cluster VRRP keepalived redundancy standby second box lead"),
    "pair-make": Place("Make a pair", "high availability HA cluster failover redundancy second box standby"),
    "pair-join": Place("Join another box", "high availability HA cluster failover redundancy pair code"),
    "backup": Place("Backup file", "save everything disaster recovery passphrase"),
    "restore": Place("Restore a backup file", "recovery import everything"),
    "factory-reset": Place("Factory reset", "wipe erase delete everything defaults"),
    "updates": Place("Updates", "upgrade version firmware bundle restart reboot go back slot"),
    "api": Place("Tokens and API", "REST automation script OpenAPI program key"),
    "password": Place("Change your password", "user account log-in"),
    "help": Place("Help", "guide manual documentation how to"),
}

FORMS = (
    Shown(ServiceForm, "service-add", where="Virtual service"),
    Shown(RealServerForm, "service-add", "servers-0-", "Real server of a service", frozenset({"remove"})),
    Shown(PolicyForm, "policy"),
    Shown(SorryForm, "sorry"),
    Shown(NetworkForm, "network"),
    Shown(
        InterfaceForm,
        "network",
        "interfaces-0-",
        "Network interface",
        frozenset(
            {"name", "parent", "tag", "members", "mode", "dhcp", "primary", "hash_policy", "lacp_rate", "miimon", "stp",
             "gone", "floating"}
        ),
    ),
    Shown(RouteForm, "routes", loose=frozenset({"*"})),
    Shown(NamesForm, "names"),
    Shown(AccessForm, "access"),
    Shown(CertificateForm, "certificate"),
    Shown(RuleForm, "rule-add", where="Firewall rule"),
    Shown(PacketForm, "firewall-test"),
    Shown(CommentForm, "review", loose=frozenset({"*"})),
    Shown(KeepingForm, "history"),
    Shown(ImportForm, "transfer"),
    Shown(TuningForm, "tuning"),
    Shown(WatchForm, "capacity"),
    Shown(BetweenForm, "capacity", loose=frozenset({"*"})),
    Shown(JoinForm, "pair-join"),
    Shown(PassphraseForm, "backup"),
    Shown(RestoreForm, "restore"),
    Shown(ResetForm, "factory-reset"),
    Shown(TokenForm, "api", loose=frozenset({"scopes"})),
    Shown(ChangePasswordForm, "password"),
)  # fmt: skip

# The words of those who know it from elsewhere.
OTHER_WORDS = {
    "ServiceForm.address": "VIP virtual IP floating listener",
    "ServiceForm.forwarding": "DSR direct server return masquerading LVS-NAT LVS-DR LVS-TUN IPIP one-arm two-arm SNAT",
    "ServiceForm.scheduler": "algorithm method balancing round robin least connections",
    "ServiceForm.persistence": "sticky session affinity stickiness",
    "ServiceForm.persistence_prefix": "netmask mask granularity sticky",
    "ServiceForm.check_kind": "health monitor probe",
    "ServiceForm.check_authority": "CA certificate authority PEM",
    "ServiceForm.check_verify": "TLS SSL certificate",
    "ServiceForm.check_interval": "seconds between probes",
    "ServiceForm.check_program": "script own custom external check",
    "ServiceForm.check_statuses": "HTTP response 200",
    "ServiceForm.fallback_kind": "failover backup server sorry page outage",
    "ServiceForm.fallback_address": "failover backup sorry server",
    "ServiceForm.agent_kind": "agent check dynamic weight feedback load",
    "ServiceForm.slow_start": "warm up ramp",
    "ServiceForm.enabled": "disable switch off maintenance",
    "RealServerForm.address": "backend node member pool RIP",
    "RealServerForm.state": "drain quiesce disable maintenance",
    "RealServerForm.upper": "maximum connections limit overload",
    "PolicyForm.release_removed": "failover dead server expire nodest",
    "PolicyForm.flood_defence": "SYN flood DDoS DoS",
    "InterfaceForm.tag": "802.1Q VLAN ID tagged trunk",
    "InterfaceForm.parent": "VLAN trunk",
    "InterfaceForm.members": "bond bridge team LAG link aggregation",
    "InterfaceForm.mode": "bond LACP 802.3ad active-backup team LAG link aggregation failover",
    "InterfaceForm.mtu": "jumbo frames packet size",
    "InterfaceForm.addresses": "static IP address netmask CIDR",
    "InterfaceForm.stp": "802.1D bridge loop",
    "NetworkForm.gateway": "default route router",
    "NetworkForm.gateway6": "default route router IPv6",
    "AccessForm.allow": "allow list whitelist ACL management",
    "AccessForm.port": "HTTPS 443 8443 management",
    "RuleForm.masquerade": "SNAT NAT internet",
    "RuleForm.rate": "rate limit DoS",
    "TuningForm.power": "governor C-states frequency latency power saving",
    "TuningForm.spread": "RPS RSS interrupts IRQ affinity",
    "PassphraseForm.passphrase": "encrypt password",
    "KeepingForm.revisions": "retention",
}  # fmt: skip


def entries() -> tuple[Entry, ...]:
    """Return the pages, their settings, and the sections of the guide."""
    return _entries(settings.GUIDE)


@cache
def _entries(guide: Path) -> tuple[Entry, ...]:
    pages = (
        Entry(place.title, reverse(name), "Page", place.words, weight=PAGE_WEIGHT) for name, place in PLACES.items()
    )
    return (*pages, *(entry for shown in FORMS for entry in shown.entries()), *_sections())


HEADING = re.compile(r"<h([12]) id=\"([^\"]+)\">(.*?)</h\1>", re.DOTALL)


def _sections() -> Iterator[Entry]:
    for name, page in book.pages().items():
        url = reverse("help") if name == book.INDEX else reverse("help-page", args=[name])
        _, *rest = HEADING.split(page.html)
        for level, anchor, title, text in zip(rest[0::4], rest[1::4], rest[2::4], rest[3::4], strict=True):
            place = url if level == "1" else f"{url}#{anchor}"
            yield Entry(strip_tags(title), place, f"Help: {page.title}", "", strip_tags(text))
