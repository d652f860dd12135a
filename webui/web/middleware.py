"""Middleware of the whole site: who the client is, what every answer carries, and the fault file."""

import re
from ipaddress import ip_address

from django.conf import settings
from django.http.request import split_domain_port

from lbconfig.model.problem import quote
from web.faults import UNKNOWN_HOST, answer, fault_file_page

HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}(:[0-9]{1,5})?")  # names of a network without DNS, too: my_lb

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


class ClientAddress:
    """Put the browser's address into REMOTE_ADDR.

    Over the UNIX socket gunicorn knows none; the only peer there is nginx, which sets X-Real-IP itself.
    Over TCP (a developer's machine) the header may come from anybody and is not looked at.
    """

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        if not request.META.get("REMOTE_ADDR"):
            try:
                address = ip_address(request.headers.get("X-Real-IP", ""))
                request.META["REMOTE_ADDR"] = str(getattr(address, "ipv4_mapped", None) or address)
            except ValueError:
                request.META["REMOTE_ADDR"] = ""
        return self.get_response(request)


class HostName:
    """Let the box be called by any name that a network knows it by; Django takes those of DNS alone.

    What is no name at all is refused in words, before something else asks for it.
    """

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        host = request.META.get("HTTP_HOST")
        if host is not None and not split_domain_port(host)[0]:
            if not HOST.fullmatch(host):
                return answer(request, UNKNOWN_HOST, quote(host))
            request.get_host = lambda: host
        return self.get_response(request)


class ResponseHeaders:
    """The content security policy on every answer, and no copy of a page in any cache."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        return response


class FaultFile:
    """While `manage.py prepare` has left a fault, every page is that fault: the database is not touched."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        if settings.FAULT_FILE.exists():
            return fault_file_page(request)
        return self.get_response(request)
