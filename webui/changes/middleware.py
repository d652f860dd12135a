"""No page that shows or edits the draft before there is one."""

from applier.wire.client import ApplierDown, ApplierRefused
from changes import actions
from lbconfig.model.snapshot import SnapshotError
from web.faults import Fault, page

WAITING = Fault(
    503,
    "The box has not answered yet",
    "This page starts from what the box runs, and the service on the box that knows it does not answer.",
    "Wait a moment and load the page again. If this page stays, restart the box.",
)
NEED_NO_DRAFT = {"login", "logout", "set-up"}


class DraftFirst:
    """Fill the draft with what the box runs when the first admin comes."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)

    def process_view(self, request, view, args, kwargs):
        if not request.user.is_authenticated or request.resolver_match.url_name in NEED_NO_DRAFT:
            return None
        try:
            actions.fill_if_empty()
        except (ApplierDown, ApplierRefused, SnapshotError) as error:
            return page(WAITING, str(error))
        return None
