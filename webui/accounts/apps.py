"""What Django calls once the models are there."""

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class Accounts(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from accounts import ledger, sessions  # they need the models

        ledger.follow()
        user_logged_in.connect(lambda request, **_: sessions.begin(request.session), weak=False)
