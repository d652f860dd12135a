"""In a pair the configuration is edited at the box that leads: on the other one its forms can be read alone."""

from __future__ import annotations

from draft.frame import Desk, look
from web.faults import Fault, page

SAFE = ("GET", "HEAD", "OPTIONS")
# Pages by which the draft is edited or applied. What is each box's own works on both: accounts, updates, repairs.
EDITS = frozenset(
    {
        "service-add", "service-edit", "service-delete", "service-servers", "operate", "server", "policy", "sorry",
        "network", "routes", "names", "access", "certificate", "rule-add", "rule-edit", "rule-delete", "rule-move",
        "rule-switch", "review", "review-cards", "apply", "discard", "history-keep", "revision-comment",
        "revision-restore", "import", "import-review", "tuning", "restore", "restore-review", "pair-draft",
    }
)  # fmt: skip


def words(desk: Desk) -> str:
    where = f" Open {' or '.join(desk.pages)}." if desk.pages else ""
    return f"The configuration of the pair is edited at {desk.hostname}, which leads.{where}"


class AtTheDesk:
    """Nothing that is sent from a form of the draft is taken where another box is the desk."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)

    def process_view(self, request, view, args, kwargs):
        if request.method in SAFE or request.resolver_match.url_name not in EDITS or not request.user.is_authenticated:
            return None
        desk = look(request).desk
        if desk is None:
            return None
        return page(Fault(409, f"{desk.hostname} leads", words(desk), "Nothing was saved here. Make the change there."))


def place(request) -> dict:
    """Context processor: where the page that is shown is edited, if not here."""
    match = getattr(request, "resolver_match", None)
    user = getattr(request, "user", None)
    if match is None or match.url_name not in EDITS or user is None or not user.is_authenticated:
        return {}
    return {"edited_at": look(request).desk}
