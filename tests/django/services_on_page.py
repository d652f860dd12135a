"""What an admin enters on the page of a virtual service."""

from forms_on_page import form_values

NEW = {
    "version": "0",
    "base": "",
    "name": "web",
    "address": "192.168.10.90",
    "port": "80",
    "protocol": "tcp",
    "scheduler": "rr",
    "forwarding": "nat",
    "enabled": "on",
    "check_kind": "http",
    "check_path": "/health",
    "check_expect": "all is well",
    "check_host": "",
    "check_port": "",
    "check_interval": "2",
    "check_timeout": "1",
    "check_failures": "3",
    "fallback_kind": "none",
    "servers-TOTAL_FORMS": "2",
    "servers-INITIAL_FORMS": "0",
    "servers-0-address": "10.2.0.41",
    "servers-0-port": "8080",
    "servers-0-weight": "2",
    "servers-0-state": "enabled",
    "servers-1-address": "",
    "servers-1-port": "",
    "servers-1-weight": "1",
    "servers-1-state": "enabled",
}


DIRECT = {
    "forwarding": "direct",
    "address": "10.2.0.100",
    "port": "8080",
    "check_kind": "connect",
    "servers-1-address": "10.2.0.42",
    "servers-1-port": "9090",
    "servers-1-forwarding": "snat",
}


def values_of(client, pk: int = 1) -> dict:
    return form_values(client.get(f"/services/{pk}/"))
