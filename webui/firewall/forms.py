"""The forms of a firewall rule, and of the packet that is tried on them.

The fields only give a value its type; what is allowed is asked of lbconfig.validate.services.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from django import forms

from draft import store as draft
from firewall.trial import OF_A_PACKET, place
from lbconfig.diff.rule_words import ACTIONS, PROTOCOLS, WHERE
from lbconfig.model.addresses import version
from lbconfig.model.firewall import Action, Packet, Per, RateLimit, Rule, RuleProtocol, Where
from lbconfig.model.flat import flat
from lbconfig.model.icmp import MESSAGES
from lbconfig.pair import entrances, interface_names
from lbconfig.validate import fields
from lbconfig.validate.firewall import MAX_NETWORKS
from web.fields import CHOOSE, FILL_IN, AddressField, PortsField, enum_field, number_field, port_field

PLAIN = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


class Networks(forms.CharField):
    """One per line; commas and spaces separate them too. Cleans to a tuple of networks, single addresses included."""

    def __init__(self, **kwargs):
        widget = forms.Textarea(attrs={**PLAIN, "rows": 3})
        super().__init__(max_length=50 * MAX_NETWORKS, widget=widget, required=False, **kwargs)

    def prepare_value(self, value):
        return value if isinstance(value, str) else "\n".join(value or ())

    def comparable(self, value) -> str:
        return "\n".join(map(_network, self.prepare_value(value).replace(",", " ").split()))

    def clean(self, value) -> tuple[str, ...]:
        return tuple(map(_network, super().clean(value).replace(",", " ").split()))


def _network(text: str) -> str:
    """The usual spelling of a network or an address; what is neither stays for lbconfig to refuse."""
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        return text


def _interfaces() -> list[tuple[str, str]]:
    return [(name, name) for name in interface_names(draft.current())]


class RuleForm(forms.Form):
    name = forms.CharField(
        label="Name",
        max_length=64,
        widget=forms.TextInput(attrs=PLAIN),
        error_messages={"required": FILL_IN},
        help_text="For yourself, such as “monitoring”.",
    )
    where = enum_field(Where, WHERE, label="Applies to")
    action = enum_field(Action, ACTIONS, label="Action")
    sources = Networks(
        label="From", help_text="Addresses and networks, one per line, IPv4 or IPv6. Empty: from everywhere."
    )
    protocol = enum_field(RuleProtocol, PROTOCOLS, forms.Select, label="Protocol")
    ports = PortsField(
        label="Ports",
        max_length=500,
        required=False,
        widget=forms.TextInput(attrs={**PLAIN, "placeholder": "all"}),
        help_text="Such as 22, 8000-8100; those that the packet is for.",
    )
    destinations = Networks(label="To", help_text="Addresses and networks, one per line. Empty: to all of them.")
    interface = forms.CharField(
        label="Interface", max_length=15, required=False, widget=forms.Select, help_text="Where the packet comes in."
    )
    masquerade = forms.BooleanField(
        label="Masquerade (source NAT)",
        required=False,
        help_text="Packets leave with this box's address: for servers with private addresses that need the internet.",
    )
    rate = number_field("Limit of new connections", required=False, placeholder="no limit")
    per = forms.TypedChoiceField(
        label="In a", coerce=Per, choices=[(str(one), str(one)) for one in Per], error_messages=CHOOSE
    )
    burst = number_field("Burst", required=False, placeholder="20")
    each_source = forms.BooleanField(
        label="Count each source separately",
        required=False,
        help_text="Otherwise all are counted together. With UDP to virtual services, each packet counts.",
    )
    log = forms.BooleanField(label="Log it", required=False, help_text="At most five lines a second.")
    enabled = forms.BooleanField(label="Enabled", required=False)
    note = forms.CharField(label="Note", max_length=500, required=False, widget=forms.TextInput(attrs=PLAIN))

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # One that the box does not have any more stays, for lbconfig to name it.
        stays = [(name, name) for name in [self["interface"].value()] if name]
        choices = {"": "any", **dict(_interfaces()), **dict(stays)}
        self.fields["interface"].widget.choices = list(choices.items())

    def wish(self, number: int) -> Rule:
        """Return the rule that was entered. What the page offers only to other rules does not count."""
        data = self.cleaned_data
        allows = data["action"] is Action.ALLOW
        data["masquerade"] = data["masquerade"] and allows and data["where"] is Where.THROUGH
        limit = RateLimit()
        if data["rate"] is not None and allows:
            burst = RateLimit().burst if data["burst"] is None else data["burst"]
            limit = RateLimit(data["rate"], data["per"], burst, data["each_source"])
        rest = {name: value for name, value in data.items() if name not in ("rate", "per", "burst", "each_source")}
        return Rule(id=number, limit=limit, **rest)


def shown(rule: Rule) -> dict[str, Any]:
    """What the form shows of it."""
    limit = {name.removeprefix("limit_"): value for name, value in flat(rule).items()}
    return limit | {"rate": rule.limit.rate or None, "burst": rule.limit.burst if rule.limit.rate else None}


DEFAULTS = shown(Rule(0, "", protocol=RuleProtocol.TCP))


class PacketForm(forms.Form):
    """The packet whose fate is asked for."""

    source = AddressField(
        label="From", max_length=45, widget=forms.TextInput(attrs={**PLAIN, "placeholder": "203.0.113.7"})
    )
    interface = forms.ChoiceField(label="Comes in by", error_messages=CHOOSE)
    destination = AddressField(
        label="To", max_length=45, widget=forms.TextInput(attrs={**PLAIN, "placeholder": "192.168.10.80"})
    )
    protocol = forms.TypedChoiceField(
        label="Protocol",
        coerce=RuleProtocol,
        choices=[(str(one), PROTOCOLS[one].long) for one in OF_A_PACKET],
        error_messages=CHOOSE,
    )
    port = port_field("Port", required=False)
    source_port = port_field("From port", required=False, placeholder="40000")
    icmp = forms.TypedChoiceField(
        label="ICMP message",
        coerce=lambda text: MESSAGES[int(text)],
        required=False,
        empty_value=None,
        choices=[
            ("", "(of ICMP only)"),
            *((number, f"IPv{one.version}: {one.words} ({one.type})") for number, one in enumerate(MESSAGES)),
        ],
        error_messages=CHOOSE,
    )

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields  # each has what its kind has
        fields["interface"].choices = [(name, name) for name in entrances(draft.current())]

    def clean(self):
        super().clean()
        data = self.cleaned_data
        for name in ("source", "destination"):
            if name in data and (sentence := place(data[name], data.get("protocol"), name)):
                self.add_error(name, _sentence(sentence))
        if not self.errors and version(data["source"]) != version(data["destination"]):
            self.add_error("destination", f"Must be an IPv{version(data['source'])} address, as the source is.")
        needs = data.get("protocol") in OF_A_PACKET and data["protocol"].has_ports
        if needs and data.get("port") is None and "port" not in self.errors:
            self.add_error("port", FILL_IN)
        message = data.get("icmp")
        if data.get("protocol") is RuleProtocol.ICMP and not self.errors:
            if message is None:
                self.add_error("icmp", CHOOSE["required"])
            elif message.version != version(data["source"]):
                self.add_error("icmp", f"Must be one of IPv{version(data['source'])}, as the source is.")
        for name in ("port", "source_port"):
            number = data.get(name)
            if number is not None and (sentence := fields.in_range(number, 1, 65535)):
                self.add_error(name, _sentence(sentence))
        return data

    def packet(self) -> Packet:
        """Return the packet that was entered."""
        data = self.cleaned_data
        ports = (data["port"], data["source_port"] or 40000) if data["protocol"].has_ports else (0, 0)
        icmp = data["icmp"].type if data["protocol"] is RuleProtocol.ICMP else 0
        return Packet(
            data["source"], data["destination"], data["protocol"], ports[0], data["interface"], ports[1], icmp
        )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
