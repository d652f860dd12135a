"""Which place of the guide tells about which page of the web UI."""

from django.urls import reverse

# The name of a page in fairlead.urls -> page of the guide, with an anchor where it is about a part of it.
PLACES = {
    "overview": "overview",
    "drift": "trouble#the-box-does-not-run-what-it-should",
    "password": "install#set-it-up",
    "service-add": "first-service",
    "service-edit": "first-service",
    "service-delete": "drain#remove-a-server-or-a-service",
    "doctor": "trouble#clients-get-no-answer",
    "service-servers": "forwarding#what-the-servers-need",
    "server": "drain",
    "policy": "drain#how-long-connections-are-remembered",
    "sorry": "drain#the-sorry-page",
    "network": "network",
    "routes": "network#routes-and-a-second-provider",
    "names": "network#names-and-time",
    "access": "firewall#who-may-open-the-web-page",
    "certificate": "firewall#a-certificate-of-your-own",
    "firewall": "firewall",
    "rule-add": "firewall#add-a-rule",
    "rule-edit": "firewall#add-a-rule",
    "rule-delete": "firewall#add-a-rule",
    "firewall-test": "firewall#try-a-packet",
    "review": "changes",
    "review-cards": "changes",
    "apply": "changes",
    "keep": "changes#a-change-that-can-cut-you-off",
    "discard": "changes",
    "progress": "changes#a-change-that-can-cut-you-off",
    "history": "changes#go-back-to-an-earlier-state",
    "history-keep": "changes#go-back-to-an-earlier-state",
    "compare": "changes#go-back-to-an-earlier-state",
    "revision": "changes#go-back-to-an-earlier-state",
    "revision-comment": "changes#go-back-to-an-earlier-state",
    "revision-restore": "changes#go-back-to-an-earlier-state",
    "transfer": "backup#export-and-import",
    "import": "backup#export-and-import",
    "import-review": "backup#export-and-import",
    "search": "overview#find-a-page-a-setting-or-a-server",
    "system": "overview#the-box-itself",
    "hardware": "hardware#findings",
    "hardware-tune": "hardware#findings",
    "tuning": "hardware#findings",
    "capacity": "hardware#how-much-it-can-forward",
    "pair": "pair-hand-over",
    "pair-hand-over": "pair-hand-over#hand-over",
    "pair-drill": "pair-hand-over#try-it",
    "pair-hold": "pair-hand-over#hold-a-box",
    "pair-choose": "pair-apart#two-configurations",
    "pair-replace": "pair-replace",
    "pair-leave": "pair-leave",
    "pair-alone": "pair-leave#go-on-without-the-other-box",
    "pair-draft": "pair-apart#when-both-drafts-were-edited",
    "pair-release": "pair-hand-over#hold-a-box",
    "pair-make": "pair-join",
    "pair-join": "pair-join",
    "backup": "backup",
    "restore": "backup#restore",
    "restore-review": "backup#restore",
    "restored": "backup#restore",
    "factory-reset": "backup#factory-reset",
    "updates": "update",
    "update-review": "update",
    "update-restart": "update#go-back",
    "update-restarting": "update#go-back",
    "api": "api",
    "token-make": "api",
}


def place(request) -> dict:
    """Context processor: the address of the help for this page; pages without a place have none."""
    found = PLACES.get(request.resolver_match.url_name) if request.resolver_match else None
    if found is None:
        return {}
    page, _, anchor = found.partition("#")
    return {"help_place": reverse("help-page", args=[page]) + (f"#{anchor}" if anchor else "")}
