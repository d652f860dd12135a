"""From the path of a problem to the page where it is fixed."""

import re

from django.urls import reverse

PAGES = (
    (re.compile(r"services\[id=(\d+)\]"), "service-edit"),
    (re.compile(r"network\.(?:routes|policies)\b"), "routes"),
    (re.compile(r"network\.(?:dns|search|ntp)\b"), "names"),
    (re.compile(r"network\b"), "network"),
    (re.compile(r"management\.(?:certificate|key)\b"), "certificate"),
    (re.compile(r"management\b"), "access"),
    (re.compile(r"sorry\b"), "sorry"),
    (re.compile(r"policy\b"), "policy"),
    (re.compile(r"firewall\.rules\[id=(\d+)\]"), "rule-edit"),
    (re.compile(r"firewall\b"), "firewall"),
)


def link(path: str) -> str:
    """The address of the page, or "" where no page fits."""
    for pattern, name in PAGES:
        if match := pattern.match(path):
            return reverse(name, args=[int(number) for number in match.groups()])
    return ""
