"""The form of a virtual service and its real servers.

The fields only give a value its type; what is allowed is asked of lbconfig.validate.services.
"""

import ipaddress
from dataclasses import replace

from django import forms

from lbconfig.model import names, ports
from lbconfig.model.checks import without_unused
from lbconfig.model.snapshot import (
    Agent,
    AgentKind,
    CheckKind,
    Fallback,
    FallbackKind,
    Forwarding,
    HealthCheck,
    HttpMethod,
    LeastHealthy,
    Matching,
    Protocol,
    Scheduler,
    ServerState,
    TooFew,
)
from lbconfig.validate.balance import agent_fields
from lbconfig.validate.neighbours import MAX_VIPS

FILL_IN = "Please fill this in."
WHOLE_NUMBER = "This must be a whole number."
PORT_NUMBER = "This must be the number of a port, or the name of a service such as https."
MAX_NUMBER = 2**31 - 1
MAX_SERVERS = 1000  # rows of one form


class TextField(forms.CharField):
    """Browsers send CR LF at the end of each line."""

    def to_python(self, value):
        return str(super().to_python(value)).replace("\r\n", "\n")


class AddressField(forms.CharField):
    """Any spelling of an IP address becomes the usual one; what is no address stays for lbconfig to refuse."""

    def to_python(self, value):
        text = str(super().to_python(value))
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            return text


class AddressesField(forms.CharField):
    """Addresses parted by commas or blanks; cleans to a tuple, each in its usual spelling."""

    def to_python(self, value):
        one = AddressField()
        return tuple(one.to_python(text) for text in str(super().to_python(value)).replace(",", " ").split())


class PortsField(forms.CharField):
    """In the usual spelling; what is no list of ports stays for lbconfig to refuse."""

    def to_python(self, value):
        text = str(super().to_python(value))
        try:
            return ports.text(ports.parse(text))
        except ValueError:
            return text


class PortField(forms.IntegerField):
    """A number, or the name of a service: "https" is 443."""

    def to_python(self, value):
        return super().to_python(ports.number(value) if isinstance(value, str) else value)


def _choices(table) -> list[tuple[str, str]]:
    return [(str(value), name.long) for value, name in table.items()]


class ExplainedField(forms.TypedChoiceField):
    """A choice with a sentence about each value, for the template."""

    sentences: dict[str, str]


def enum_field(kind, table, **kwargs) -> ExplainedField:
    field = ExplainedField(
        coerce=kind,
        choices=_choices(table),
        widget=forms.RadioSelect,
        error_messages={"required": "Please choose one.", "invalid_choice": "Please choose one of these."},
        **kwargs,
    )
    field.sentences = {str(value): name.help for value, name in table.items()}
    return field


def port_field(label: str, placeholder: str = "", **kwargs) -> forms.IntegerField:
    return number_field(label, placeholder, PortField, PORT_NUMBER, **kwargs)


def number_field(
    label: str,
    placeholder: str = "",
    kind: type[forms.IntegerField] = forms.IntegerField,
    invalid: str = WHOLE_NUMBER,
    **kwargs,
) -> forms.IntegerField:
    field = kind(
        label=label,
        max_value=MAX_NUMBER,
        min_value=-MAX_NUMBER,
        error_messages={"required": FILL_IN, "invalid": invalid},
        widget=forms.TextInput(
            attrs={"inputmode": "numeric", "autocomplete": "off"}
            | ({"placeholder": placeholder} if placeholder else {})
        ),
        **kwargs,
    )
    return field


def _text(label: str, limit: int, kind: type[forms.CharField] = forms.CharField, **kwargs) -> forms.CharField:
    attributes = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"} | kwargs.pop("attrs", {})
    return kind(
        label=label,
        max_length=limit,
        widget=forms.TextInput(attrs=attributes),
        error_messages={"required": FILL_IN, "max_length": f"This is longer than {limit} characters."},
        **kwargs,
    )


def _unseen_text(label: str, help_text: str) -> forms.CharField:
    """Typed unseen, but kept when the form comes back with an error."""
    return forms.CharField(
        label=label,
        max_length=200,
        required=False,
        strip=False,
        widget=forms.PasswordInput(render_value=True, attrs={"autocomplete": "off"}),
        error_messages={"max_length": "This is longer than 200 characters."},
        help_text=help_text,
    )


class ServiceForm(forms.Form):
    name = _text("Name", 64, help_text="For yourself, such as “web shop”.")
    address = _text(
        "Virtual address (VIP)",
        45,
        AddressField,
        help_text="Where clients connect.",
        attrs={"placeholder": "10.0.2.100"},
    )
    port = port_field("Port")
    more_ports = _text(
        "More ports",
        500,
        PortsField,
        required=False,
        attrs={"placeholder": "443, 8000-8100"},
        help_text="Ports and ranges that belong to the same service; servers then have no port of their own.",
    )
    more_addresses = _text(
        "More virtual addresses",
        MAX_VIPS * 47,
        AddressesField,
        required=False,
        attrs={"placeholder": "10.0.2.101, 10.0.2.102"},
        help_text="It answers there on the same ports, and a client that comes back keeps its server at all of them.",
    )
    protocol = enum_field(Protocol, names.PROTOCOLS, label="Protocol")
    scheduler = enum_field(Scheduler, names.SCHEDULERS, label="Which server gets the next connection")
    persistence = number_field(
        "Seconds that a client comes back to the same server",
        required=False,
        help_text="Counted from its last connection. Empty: each connection is balanced by itself.",
    )
    persistence_prefix = number_field(
        "Clients that count as one",
        required=False,
        help_text="Bits of their addresses that agree, such as 24 for a network of 256. Empty: each for itself.",
    )
    one_packet = forms.BooleanField(
        label="Balance each packet by itself",
        required=False,
        help_text="One-packet scheduling, for traffic that goes one way, such as syslog: by NAT no answers come back.",
    )
    call_id = forms.BooleanField(
        label="Keep SIP calls together, not clients",
        required=False,
        help_text="By the Call-ID of SIP over UDP, in each packet: the calls of one telephone system are spread over "
        "the servers.",
    )
    hash_port = forms.BooleanField(
        label="The client's port counts too",
        required=False,
        help_text="Spreads the connections of one client, such as a proxy, over the servers.",
    )
    hash_next = forms.BooleanField(
        label="Go to another server when the chosen one takes nothing",
        required=False,
        help_text="Otherwise clients of a server that is quiesced or down get no answer.",
    )
    enabled = forms.BooleanField(
        label="Enabled",
        required=False,
        help_text="Without it the box does not serve this service; it stays here to be enabled again.",
    )
    note = _text("Note", 500, required=False, help_text="For yourself and other admins.")
    forwarding = enum_field(Forwarding, names.FORWARDING, label="How packets reach the servers")
    check_kind = enum_field(CheckKind, names.CHECKS, label="How the box asks a server whether it is up")
    check_path = _text(
        "Path", 200, required=False, attrs={"placeholder": "/"}, help_text="What is requested, such as /health."
    )
    check_expect = _text(
        "Expected text",
        200,
        required=False,
        help_text="The answer must contain it. Empty: any successful answer counts.",
    )
    check_matching = forms.TypedChoiceField(
        label="The answer",
        coerce=Matching,
        empty_value=Matching.CONTAINS,
        required=False,
        choices=_choices(names.MATCHINGS),
        error_messages={"invalid_choice": "Please choose one of these."},
        help_text="How the expected text is looked for: as it is, or as a regular expression.",
    )
    check_host = _text("Host name", 253, required=False, help_text="Sent as Host. Empty: the server's address.")
    check_method = forms.TypedChoiceField(
        label="Method",
        coerce=HttpMethod,
        empty_value=HttpMethod.GET,
        required=False,
        choices=_choices(names.HTTP_METHODS),
        error_messages={"invalid_choice": "Please choose one of these."},
    )
    check_statuses = _text(
        "Status codes that count",
        200,
        required=False,
        attrs={"placeholder": "200-299"},
        help_text="Such as 200-299,401. A redirect (302) is not followed; list it if it means that the server is well.",
    )
    check_port = port_field("Port of the check", required=False, help_text="Empty: the port of the server itself.")
    check_login = _text("Log in as", 200, required=False, help_text="Empty: the server is asked without a log-in.")
    check_password = _unseen_text("Password", "It is stored as it is, and sent to the servers.")
    check_secret = _unseen_text("Shared secret", "That the RADIUS servers know this box by.")
    check_database = _text(
        "Database", 200, required=False, help_text="Empty: none with MySQL, postgres with PostgreSQL."
    )
    check_ask = _text(
        "What is asked for",
        200,
        required=False,
        help_text="DNS: a name. LDAP: an entry, as dc=example,dc=org. MySQL, PostgreSQL: a query that must find a row. "
        "Send and expect: the text, \\n for a new line.",
    )
    check_verify = forms.BooleanField(
        label="Its certificate must be good",
        required=False,
        help_text="Signed by a known authority, for the host name of the check.",
    )
    check_authority = TextField(
        label="Signed by",
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "autocomplete": "off"}),
        help_text="Certificates (PEM) of your own authority. Empty: the public ones.",
    )
    check_old_tls = forms.BooleanField(
        label="Old versions of TLS will do (1.0, 1.1)",
        required=False,
        help_text="For servers that know no newer one. Anybody on the way can break these, and read a log-in.",
    )
    check_program = TextField(
        label="Program",
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 10, "spellcheck": "false", "autocomplete": "off", "placeholder": "#!/bin/sh"}
        ),
        help_text="For sh, perl or python3. Its arguments: virtual address, port, server, port. Exit code 0 means up; "
        "its last line of output is the reason. It runs without rights, and can write nowhere. A log-in belongs "
        "in the fields for it, which it gets as FAIRLEAD_LOGIN and FAIRLEAD_PASSWORD: those who may only read see "
        "the program.",
    )
    check_interval = number_field("Seconds between checks")
    check_timeout = number_field("Seconds to wait for an answer")
    check_failures = number_field("Failed checks until a server leaves")
    check_successes = number_field(
        "Good checks until it is back",
        required=False,
        placeholder="1",
        help_text="In a row, of a server that has failed.",
    )
    check_retry = number_field(
        "Seconds between failed checks",
        required=False,
        placeholder="same",
        help_text="While a server that has failed is still in. Empty: as between other checks.",
    )
    check_connects = number_field(
        "Plain connects in between",
        required=False,
        placeholder="none",
        help_text="Between two whole checks, to spare the servers.",
    )

    fallback_kind = enum_field(FallbackKind, names.FALLBACKS, label="Who answers while all real servers are down")
    fallback_address = _text("Fallback server", 45, AddressField, required=False, attrs={"placeholder": "10.2.0.99"})
    fallback_port = port_field("Port", required=False, placeholder="same")

    agent_kind = enum_field(
        AgentKind, names.AGENTS, label="What changes the weights", required=False, empty_value=AgentKind.OFF
    )
    agent_port = port_field("Port of the agent", required=False, placeholder="3333")
    agent_interval = number_field("Seconds between two questions", required=False, placeholder="5")
    agent_floor = number_field(
        "Least share, %", required=False, placeholder="10", help_text="Of its weight, however busy a server is."
    )
    slow_start = number_field(
        "Seconds of a slow start",
        required=False,
        placeholder="none",
        help_text="A server that was down gets back to its weight step by step.",
    )
    least_healthy_servers = number_field("Servers that must be up", required=False, placeholder="any")
    least_healthy_then = enum_field(
        TooFew, names.TOO_FEW, label="When fewer are up", required=False, empty_value=TooFew.TELL
    )
    least_healthy_again = number_field(
        "Serve again with so many",
        required=False,
        placeholder="same",
        help_text="More of them, so that it does not flap.",
    )

    def agent(self) -> Agent:
        """Of the cleaned data, without what its kind does not use: such fields are not on the screen."""
        data, plain = self.cleaned_data, Agent()
        kind = data["agent_kind"]
        entered = {name: data[f"agent_{name}"] for name in agent_fields(kind)}
        return replace(plain, kind=kind, **{name: value for name, value in entered.items() if value is not None})

    def least_healthy(self) -> LeastHealthy:
        """The same."""
        data = self.cleaned_data
        servers, then = data["least_healthy_servers"] or 0, data["least_healthy_then"]
        if not servers:
            return LeastHealthy()
        return LeastHealthy(servers, then, (data["least_healthy_again"] or 0) if then is TooFew.ASIDE else 0)

    def fallback(self) -> Fallback:
        """Of the cleaned data."""
        data = self.cleaned_data
        if data["fallback_kind"] is not FallbackKind.SERVER:
            return Fallback(data["fallback_kind"])
        return Fallback(FallbackKind.SERVER, data["fallback_address"], data["fallback_port"] or 0)

    def health_check(self) -> HealthCheck:
        """The check of the cleaned data, without what its kind does not use: such fields are not on the screen."""
        data = self.cleaned_data
        check = HealthCheck(
            kind=data["check_kind"],
            port=data["check_port"] or 0,
            path=data["check_path"] or "/",
            host=data["check_host"],
            expect=data["check_expect"],
            interval=data["check_interval"],
            timeout=data["check_timeout"],
            failures=data["check_failures"],
            successes=1 if data["check_successes"] is None else data["check_successes"],
            retry=data["check_retry"] or 0,
            connects=data["check_connects"] or 0,
            **{
                name: data[f"check_{name}"]
                for name in (
                    "login",
                    "password",
                    "secret",
                    "database",
                    "ask",
                    "verify",
                    "authority",
                    "method",
                    "statuses",
                    "matching",
                    "old_tls",
                    "program",
                )
            },
        )
        return without_unused(check)


class RealServerForm(forms.Form):
    """One row. A row without address and port is an empty one, and no mistake."""

    note: str  # what another admin changed meanwhile, where he did

    id = forms.IntegerField(required=False, widget=forms.HiddenInput, max_value=2**62, min_value=0)
    address = _text("Address", 45, AddressField, required=False, attrs={"placeholder": "10.2.0.11"})
    port = port_field("Port", required=False, placeholder="same")  # empty: that of the service
    weight = number_field("Weight", required=False)
    state = forms.TypedChoiceField(
        label="State",
        coerce=ServerState,
        empty_value=ServerState.ENABLED,
        required=False,
        choices=_choices(names.SERVER_STATES),
        error_messages={"invalid_choice": "Please choose one of these."},
    )
    upper = number_field("At most so many connections", required=False)
    lower = number_field("New ones again below", required=False)
    name = _text("Name of the server", 64, required=False, help_text="For yourself, such as “web 1”.")
    forwarding = forms.TypedChoiceField(
        label="Forwarding",
        coerce=Forwarding,
        empty_value=None,
        required=False,
        choices=[("", "as the service"), *_choices(names.FORWARDING)],
        error_messages={"invalid_choice": "Please choose one of these."},
    )
    remove = forms.BooleanField(label="Remove", required=False)

    @property
    def blank(self) -> bool:
        data = self.cleaned_data
        return not self.errors and not data.get("address") and data.get("port") is None

    def clean(self):
        super().clean()
        data = self.cleaned_data
        if data.get("remove"):
            self.errors.clear()
            return data
        if not self.errors and (data.get("address") or data.get("port") is not None):
            for name in ("address", "weight"):
                if data.get(name) in ("", None):
                    self.add_error(name, FILL_IN)
        return data


class OperationForm(forms.Form):
    """Without `server`: in every service."""

    state = forms.TypedChoiceField(coerce=ServerState, choices=_choices(names.SERVER_STATES))
    address = forms.CharField(max_length=45)
    server = forms.IntegerField(required=False, min_value=1, max_value=2**62)


RealServerFormSet = forms.formset_factory(RealServerForm, extra=0, max_num=MAX_SERVERS, absolute_max=MAX_SERVERS)

DEFAULTS = {
    "protocol": "tcp",
    "scheduler": "wlc",
    "forwarding": "nat",
    "enabled": True,
    "check_kind": "connect",
    "check_path": "/",
    "check_interval": 2,
    "check_timeout": 2,
    "check_failures": 2,
    "check_method": "get",
    "check_matching": "contains",
    "fallback_kind": "none",
    "agent_kind": "off",
    "agent_port": 3333,
    "agent_interval": 5,
    "agent_floor": 10,
    "least_healthy_then": "tell",
}
NEW_ROW = {"weight": 1, "state": "enabled"}
