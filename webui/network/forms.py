"""Host name, interfaces of every kind, gateway; and from where the web UI may be reached."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django import forms

from balancing.forms import port_field
from lbconfig.model import names
from lbconfig.model.network import ONE_SPEAKS, BondMode, HashPolicy, LacpRate
from lbconfig.model.snapshot import HTTPS_PORT, Bond, Bridge, Interface, Management, Vlan
from web.fields import FILL_IN

PLAIN = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
MAX_LINES = 100
MAX_INTERFACES = 64


class Lines(forms.CharField):
    """One entry a line; commas and spaces separate them too. Cleans to a tuple of texts."""

    def __init__(self, **kwargs):
        rows = kwargs.pop("rows", 3)
        super().__init__(max_length=50 * MAX_LINES, widget=forms.Textarea(attrs={**PLAIN, "rows": rows}), **kwargs)

    def prepare_value(self, value):
        return value if isinstance(value, str) else "\n".join(value or ())

    def comparable(self, value) -> str:
        return "\n".join(self.prepare_value(value).split())

    def clean(self, value) -> tuple[str, ...]:
        entries = tuple(super().clean(value).replace(",", " ").split())
        if len(entries) > MAX_LINES:
            raise forms.ValidationError(f"These are more than {MAX_LINES} entries.")
        return entries


class NetworkForm(forms.Form):
    hostname = forms.CharField(
        label="Host name", max_length=253, widget=forms.TextInput(attrs=PLAIN), error_messages={"required": FILL_IN}
    )
    gateway = forms.CharField(
        label="Default gateway",
        max_length=45,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
        help_text="Empty: none, or the one that DHCP brings.",
    )
    gateway6 = forms.CharField(
        label="IPv6 default gateway",
        max_length=45,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
        help_text="Empty: none. Router announcements are not listened to.",
    )


class Members(forms.MultipleChoiceField):
    """Interfaces to tick; which of them fit is lbconfig's to say. Cleans to a tuple of names."""

    widget = forms.CheckboxSelectMultiple

    def prepare_value(self, value):
        return value.split() if isinstance(value, str) else list(value or ())

    def comparable(self, value) -> str:
        return " ".join(self.prepare_value(value))

    def valid_value(self, value) -> bool:
        return len(value) <= 64

    def clean(self, value) -> tuple[str, ...]:
        return tuple(super().clean(value))


def _words(table: dict, common: tuple = ()) -> list[tuple[str, str]]:
    """Choices, the common ones first."""
    return [(value, table[value].long) for value in (*common, *(one for one in table if one not in common))]


class InterfaceForm(forms.Form):
    """Of any kind: `kind` says which of the fields count, and the page shows those."""

    name = forms.CharField(label="Name", max_length=64, required=False, widget=forms.TextInput(attrs=PLAIN))
    kind = forms.ChoiceField(
        choices=[(one, one) for one in ("card", "vlan", "bond", "bridge")], widget=forms.HiddenInput, required=False
    )
    new = forms.BooleanField(required=False, widget=forms.HiddenInput)
    gone = forms.BooleanField(label="Remove it", required=False)
    parent = forms.CharField(label="Parent interface", max_length=64, required=False)
    tag = forms.IntegerField(label="VLAN ID", required=False, help_text="1 to 4094")
    members = Members(label="Members", required=False)
    mode = forms.ChoiceField(label="Mode", choices=_words(names.BOND_MODES, names.COMMON_BOND_MODES))
    dhcp = forms.BooleanField(label="Get an address from DHCP", required=False)
    addresses = Lines(
        label="Fixed addresses",
        required=False,
        rows=2,
        help_text="One per line, with the length of the network, such as 10.2.0.1/24 or 2001:db8::1/64.",
    )
    floating = Lines(
        label="Floating addresses",
        required=False,
        rows=2,
        help_text="Of whichever box leads; the other box gets the same ones. With the length of the network.",
    )
    off = forms.BooleanField(label="Disabled", required=False)
    mtu = forms.IntegerField(label="MTU", required=False, help_text="In bytes. Empty: as it is.")
    note = forms.CharField(label="Note", max_length=500, required=False)
    primary = forms.CharField(label="Primary member", max_length=64, required=False)
    hash_policy = forms.ChoiceField(label="Transmit hash policy", choices=_words(names.HASH_POLICIES), required=False)
    lacp_rate = forms.ChoiceField(label="LACP rate", choices=_words(names.LACP_RATES), required=False)
    miimon = forms.IntegerField(label="Link check interval (ms)", required=False)
    stp = forms.BooleanField(label="Spanning tree (STP)", required=False)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["mode"].required = False
        if not self["new"].value() or self["kind"].value() not in MADE:
            self.fields["name"].widget = forms.HiddenInput()

    def offer(self, others: list[str]) -> None:
        """The interfaces that may be ticked or chosen."""
        fields: dict[str, Any] = self.fields  # each has what its kind has
        chosen = fields["members"].prepare_value(self["members"].value())
        fields["members"].choices = [(name, name) for name in dict.fromkeys([*others, *chosen])]
        for field, empty in (("parent", []), ("primary", [("", "any")])):
            now = [self[field].value()] if self[field].value() else []
            choices = [*empty, *((name, name) for name in dict.fromkeys([*others, *now]))]
            self.fields[field].widget = forms.Select(choices=choices)

    @property
    def more_wrong(self) -> bool:
        return any(name in self.errors for name in MORE)


MADE = ("vlan", "bond", "bridge")  # kinds that the page can add
MORE = ("name", "off", "mtu", "note", "primary", "hash_policy", "lacp_rate", "miimon", "stp", "gone")


class _Interfaces(forms.BaseFormSet):
    default_error_messages = {"missing_management_form": "This form is not complete. Open the page again."}


InterfaceFormSet = forms.formset_factory(
    InterfaceForm, formset=_Interfaces, extra=0, max_num=MAX_INTERFACES, absolute_max=MAX_INTERFACES
)


class AccessForm(forms.Form):
    allow = Lines(
        label="Networks that may open this web page",
        rows=6,
        help_text="One per line, such as 192.168.0.0/16 or 2001:db8::/48. A single address is written 192.0.2.7/32.",
        error_messages={"required": "Name at least one network."},
    )
    port = port_field(
        "Port of this web page",
        required=False,
        help_text=f"Usually {HTTPS_PORT}. With another one, the address ends in it: https://192.0.2.7:8443.",
    )
    interfaces = Members(
        label="Interfaces that this web page answers on",
        required=False,
        help_text="None ticked: all of them. What counts is where a request arrives, whichever address it is for.",
    )

    def offer(self, entrances: Iterable[str]) -> None:
        """The interfaces that may be ticked, and those that are."""
        fields: dict[str, Any] = self.fields  # each has what its kind has
        field = fields["interfaces"]
        chosen = field.prepare_value(self["interfaces"].value())
        field.choices = [(name, name) for name in dict.fromkeys([*entrances, *chosen])]

    @property
    def more_open(self) -> bool:
        """Whether there is something to see under "more"."""
        chosen = self["port"].value() not in (None, "", HTTPS_PORT, str(HTTPS_PORT)) or self["interfaces"].value()
        told = any(self[name].errors or getattr(self.fields[name], "note", "") for name in ("port", "interfaces"))
        return bool(chosen or told)


def values_of(interface: Interface) -> dict:
    """What the form shows of it."""
    bond, vlan = interface.bond or Bond(), interface.vlan
    kind = "vlan" if vlan else "bond" if interface.bond else "bridge" if interface.bridge else "card"
    return {
        "name": interface.name,
        "kind": kind,
        "parent": vlan.parent if vlan else "",
        "tag": vlan.id if vlan else None,
        "members": list(interface.members),
        "mode": bond.mode,
        "dhcp": interface.dhcp,
        "addresses": list(interface.addresses),
        "floating": list(interface.floating),
        "off": not interface.on,
        "mtu": interface.mtu or None,
        "note": interface.note,
        "primary": bond.primary,
        "hash_policy": bond.hash_policy,
        "lacp_rate": bond.lacp_rate,
        "miimon": bond.miimon,
        "stp": bool(interface.bridge and interface.bridge.stp),
    }


def interface_wish(data: dict, name: str) -> Interface:
    """Return the interface that a row describes."""
    kind, members = data["kind"], data["members"]
    plain = Interface(name, data["dhcp"], data["addresses"], not data["off"], data["mtu"] or 0, data["note"])
    plain = replace(plain, floating=data["floating"])
    if kind == "vlan":
        return replace(plain, vlan=Vlan(data["parent"], data["tag"] or 0))
    if kind == "bond":
        mode = BondMode(data["mode"] or BondMode.ACTIVE_BACKUP)
        bond = Bond(members, mode, miimon=100 if data["miimon"] is None else data["miimon"])
        return replace(
            plain,
            bond=replace(
                bond,
                lacp_rate=LacpRate(data["lacp_rate"] or bond.lacp_rate),
                hash_policy=HashPolicy(data["hash_policy"] or bond.hash_policy),
                primary=data["primary"] if mode in ONE_SPEAKS else "",
            ),
        )
    return replace(plain, bridge=Bridge(members, data["stp"])) if kind == "bridge" else plain


def management_wish(form: AccessForm, before: Management) -> Management:
    data = form.cleaned_data
    port = HTTPS_PORT if data["port"] is None else data["port"]
    return replace(before, allow=data["allow"], port=port, interfaces=data["interfaces"])
