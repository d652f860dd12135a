"""A busy machine, pretended: what a test does not wait for then fails each time, and not once a month.

FAIRLEAD_LATE=2 make test-web: each page comes so many seconds late.
FAIRLEAD_SLOW=10 make test-web: the browser is so many times slower.
"""

import os
import time

LATE = float(os.environ.get("FAIRLEAD_LATE", "0"))  # seconds
SLOW = float(os.environ.get("FAIRLEAD_SLOW", "1"))


class Late:
    """Middleware: every page waits, the files of its front end do not."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        time.sleep(LATE)
        return self.get_response(request)
