"""A session opens nothing in the API: its requests lose their cookies before anybody looks at them."""

PREFIX = "/api/"


class NoCookies:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        if request.path.startswith(PREFIX):
            request.META.pop("HTTP_COOKIE", None)
            request.COOKIES = {}
        return self.get_response(request)
