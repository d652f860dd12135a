"""The form of a virtual service and its real servers.

The fields only give a value its type; what is allowed is asked of lbconfig.validate.services. A field is named as
lbconfig.model.flat names it: `check_port` is the field `port` of `check`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from django import forms

from lbconfig.model import names
from lbconfig.model.checks import without_unused
from lbconfig.model.flat import defaults, shaped
from lbconfig.model.snapshot import (
    MAX_REQUESTS,
    Agent,
    AgentKind,
    CheckKind,
    Fallback,
    FallbackCheck,
    FallbackKind,
    Forwarding,
    HttpMethod,
    LeastHealthy,
    Matching,
    Protocol,
    RealServer,
    Scheduler,
    ServerState,
    TooFew,
    VirtualService,
)
from lbconfig.validate.balance import agent_fields
from lbconfig.validate.neighbours import MAX_VIPS
from web.fields import (
    FILL_IN,
    AddressesField,
    AddressField,
    PortsField,
    RequestsField,
    TagsField,
    TextField,
    enum_field,
    number_field,
    port_field,
    text_field,
    unseen_field,
)

MAX_SERVERS = 1000  # rows of one form
# The fields behind each "more"; one that is wrong opens it.
MORE = {
    "check": (
        "check_host", "check_port", "check_interval", "check_timeout", "check_failures", "check_connects",
        "check_successes", "check_retry", "check_verify", "check_method", "check_statuses", "check_matching",
        "check_old_tls", "check_more_requests",
    ),
    "place": ("tags", "note", "more_ports", "more_addresses"),
    "balancing": ("persistence", "persistence_prefix", "call_id"),
    "load": (
        "agent_kind", "agent_port", "agent_interval", "agent_floor", "slow_start", "least_healthy_servers",
        "least_healthy_then", "least_healthy_again",
    ),
    "fallback": ("fallback_kind", "fallback_address", "fallback_port", "fallback_check"),
}  # fmt: skip


class ServiceForm(forms.Form):
    name = text_field("Name", 64, help_text="For yourself, such as “web shop”.")
    address = text_field(
        "Virtual address (VIP)",
        45,
        AddressField,
        help_text="Where clients connect.",
        attrs={"placeholder": "10.0.2.100"},
    )
    port = port_field("Port")
    more_ports = text_field(
        "More ports",
        500,
        PortsField,
        required=False,
        attrs={"placeholder": "443, 8000-8100"},
        help_text="Ports and ranges that belong to the same service; servers then have no port of their own.",
    )
    more_addresses = text_field(
        "More virtual addresses",
        MAX_VIPS * 47,
        AddressesField,
        required=False,
        attrs={"placeholder": "10.0.2.101, 10.0.2.102"},
        help_text="It answers there on the same ports, and a client that comes back keeps its server at all of them.",
    )
    protocol = enum_field(Protocol, names.PROTOCOLS, label="Protocol")
    scheduler = enum_field(Scheduler, names.SCHEDULERS, label="Scheduler: which server gets the next connection")
    persistence = number_field(
        "Persistence timeout (seconds)",
        required=False,
        help_text="Counted from its last connection. Empty: each connection is balanced by itself.",
    )
    persistence_prefix = number_field(
        "Persistence prefix length (bits)",
        required=False,
        help_text="Clients whose addresses agree in so many bits count as one: 24 is a network of 256. "
        "Empty: each client by itself.",
    )
    one_packet = forms.BooleanField(
        label="Balance each packet by itself",
        required=False,
        help_text="One-packet scheduling, for one-way traffic such as syslog: with NAT no answers come back.",
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
        label="Go to another server when the chosen one takes no connections",
        required=False,
        help_text="Otherwise clients of a server that is quiesced or down get no answer.",
    )
    enabled = forms.BooleanField(
        label="Enabled",
        required=False,
        help_text="Without it the box does not serve this service; it stays here to be enabled again.",
    )
    tags = TagsField(
        label="Tags",
        max_length=500,
        required=False,
        help_text="Separated by commas, such as “shop, production”. The overview finds services by them.",
    )
    note = text_field("Note", 500, required=False, help_text="For yourself and other admins.")
    forwarding = enum_field(Forwarding, names.FORWARDING, label="Forwarding method")
    check_kind = enum_field(CheckKind, names.CHECKS, label="Type of check")
    check_path = text_field(
        "Path", 200, required=False, attrs={"placeholder": "/"}, help_text="What is requested, such as /health."
    )
    check_expect = text_field(
        "Expected text",
        200,
        required=False,
        help_text="The answer must contain it. Empty: any successful answer counts.",
    )
    check_matching = enum_field(
        Matching,
        names.MATCHINGS,
        forms.Select,
        label="The answer",
        required=False,
        empty_value=Matching.CONTAINS,
        help_text="How the expected text is looked for: as it is, or as a regular expression.",
    )
    check_host = text_field("Host name", 253, required=False, help_text="Sent as Host. Empty: the server's address.")
    check_method = enum_field(
        HttpMethod,
        names.HTTP_METHODS,
        forms.Select,
        label="Method",
        required=False,
        empty_value=HttpMethod.GET,
    )
    check_statuses = text_field(
        "Status codes that count",
        200,
        required=False,
        attrs={"placeholder": "200-299"},
        help_text="Such as 200-299,401. A redirect (302) is not followed; list it if it means that the server is well.",
    )
    check_port = port_field("Port of the check", required=False, help_text="Empty: the port of the server itself.")
    check_login = text_field("Log in as", 200, required=False, help_text="Empty: the server is asked without a log-in.")
    check_password = unseen_field("Password", "It is stored as it is, and sent to the servers.")
    check_secret = unseen_field("Shared secret", "That the RADIUS servers know this box by.")
    check_database = text_field(
        "Database", 200, required=False, help_text="Empty: none with MySQL, postgres with PostgreSQL."
    )
    check_ask = text_field(
        "What is asked for",
        200,
        required=False,
        help_text="DNS: a name. LDAP: an entry, as dc=example,dc=org. MySQL, PostgreSQL: a query that must find a row. "
        "Send and expect: the text, \\n for a new line. A program gets it as FAIRLEAD_ASK.",
    )
    check_more_requests = RequestsField(
        label="More requests",
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 3, "spellcheck": "false", "autocomplete": "off", "placeholder": "/api/health expected text"}
        ),
        help_text=f"At most {MAX_REQUESTS}, one per line: a path, and after a blank the text that its answer must "
        "contain, if any. They are sent one after the other; all must be good within the time to wait for an answer.",
    )
    check_verify = forms.BooleanField(
        label="Verify the server's certificate",
        required=False,
        help_text="Signed by a known authority, for the host name of the check.",
    )
    check_authority = TextField(
        label="Trusted certificate authorities",
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "autocomplete": "off"}),
        help_text="Certificates (PEM) of your own authority. Empty: the public ones.",
    )
    check_old_tls = forms.BooleanField(
        label="Allow old versions of TLS (1.0, 1.1)",
        required=False,
        help_text="For servers that have nothing newer. Anybody on the path can break these, and read a log-in.",
    )
    check_program = TextField(
        label="Program",
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 10, "spellcheck": "false", "autocomplete": "off", "placeholder": "#!/bin/sh"}
        ),
        help_text="For sh, perl or python3. Its arguments: virtual address, its port, server, its port. Exit code 0 "
        "means up; the last line of output is the reason. It has no privileges and can write nowhere. Enter a "
        "log-in below instead of here, where all who may read the configuration see it: the program gets it as "
        "FAIRLEAD_LOGIN and FAIRLEAD_PASSWORD.",
    )
    check_interval = number_field("Check interval (seconds)")
    check_timeout = number_field("Check timeout (seconds)")
    check_failures = number_field("Failures before a server is down")
    check_successes = number_field(
        "Successes before it is up again",
        required=False,
        placeholder="1",
        help_text="In a row, by a server that has failed.",
    )
    check_retry = number_field(
        "Retry interval (seconds)",
        required=False,
        placeholder="same",
        help_text="After a first failure, until the server is down. Empty: the check interval.",
    )
    check_connects = number_field(
        "Plain connects between checks",
        required=False,
        placeholder="none",
        help_text="So many between two full checks, which spares the servers.",
    )

    fallback_kind = enum_field(FallbackKind, names.FALLBACKS, label="Who answers while all real servers are down")
    fallback_address = text_field(
        "Fallback server", 45, AddressField, required=False, attrs={"placeholder": "10.2.0.99"}
    )
    fallback_port = port_field("Port", required=False, placeholder="same")
    fallback_check = enum_field(
        FallbackCheck,
        names.FALLBACK_CHECKS,
        forms.Select,
        label="How the box asks it whether it is up",
        required=False,
        empty_value=FallbackCheck.OFF,
        help_text="At all times, so that you know before it is needed. While it is down, too, clients are refused at "
        "once instead of waiting.",
    )

    agent_kind = enum_field(
        AgentKind, names.AGENTS, label="Weights that follow the load", required=False, empty_value=AgentKind.OFF
    )
    agent_port = port_field("Port of the agent", required=False, placeholder="3333")
    agent_interval = number_field("Query interval (seconds)", required=False, placeholder="5")
    agent_floor = number_field(
        "Minimum share (%)", required=False, placeholder="10", help_text="Of its weight, however busy a server is."
    )
    slow_start = number_field(
        "Slow start (seconds)",
        required=False,
        placeholder="none",
        help_text="A server that was down gets back to its weight step by step.",
    )
    least_healthy_servers = number_field("Minimum number of servers up", required=False, placeholder="any")
    least_healthy_then = enum_field(
        TooFew, names.TOO_FEW, label="When fewer are up", required=False, empty_value=TooFew.TELL
    )
    least_healthy_again = number_field(
        "Serve again with at least",
        required=False,
        placeholder="same",
        help_text="A higher number keeps the service from flapping.",
    )

    def service(self, key: int, servers: Iterable[RealServer]) -> VirtualService:
        """Return the service that was entered, without what is not on the screen for what is chosen."""
        values = {name: None if value == "" else value for name, value in self.cleaned_data.items()}
        return _without_hidden(shaped(VirtualService, values, id=key, real_servers=tuple(servers)))


def _without_hidden(service: VirtualService) -> VirtualService:
    agent, least, fallback = service.agent, service.least_healthy, service.fallback
    if fallback.kind is not FallbackKind.SERVER:
        fallback = Fallback(fallback.kind)
    if least.then is not TooFew.ASIDE or not least.servers:
        least = replace(least, again=0) if least.servers else LeastHealthy()
    used = {name: getattr(agent, name) for name in agent_fields(agent.kind)}
    return replace(
        service,
        check=without_unused(service.check),
        agent=Agent(agent.kind, **used),
        least_healthy=least,
        fallback=fallback,
    )


class RealServerForm(forms.Form):
    """One row. A row without address and port is an empty one, and no mistake."""

    note: str  # what another admin changed meanwhile, where he did

    id = forms.IntegerField(required=False, widget=forms.HiddenInput, max_value=2**62, min_value=0)
    address = text_field("Address", 45, AddressField, required=False, attrs={"placeholder": "10.2.0.11"})
    port = port_field("Port", required=False, placeholder="same")  # empty: that of the service
    weight = number_field("Weight", required=False)
    state = enum_field(
        ServerState,
        names.SERVER_STATES,
        forms.Select,
        label="State",
        required=False,
        empty_value=ServerState.ENABLED,
    )
    upper = number_field("Upper connection threshold", required=False)
    lower = number_field("New ones again below", required=False)
    name = text_field("Name of the server", 64, required=False, help_text="For yourself, such as “web 1”.")
    forwarding = enum_field(
        Forwarding,
        names.FORWARDING,
        forms.Select,
        label="Forwarding",
        required=False,
        empty_value=None,
        none="as the service",
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

    state = enum_field(ServerState, names.SERVER_STATES)
    address = forms.CharField(max_length=45)
    server = forms.IntegerField(required=False, min_value=1, max_value=2**62)


RealServerFormSet = forms.formset_factory(RealServerForm, extra=0, max_num=MAX_SERVERS, absolute_max=MAX_SERVERS)


def shown(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a service as the form has them: an optional number that is as it begins is left empty."""
    begins, found = defaults(VirtualService), {}
    for name, field in ServiceForm.base_fields.items():
        value = values.get(name)
        optional = isinstance(field, forms.IntegerField) and not field.required
        found[name] = None if optional and value == begins.get(name) else field.prepare_value(value)
    return found


NEW_ROW = {"weight": 1, "state": "enabled"}
