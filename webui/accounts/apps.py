"""What Django calls once the models are there."""

from django.apps import AppConfig


class Accounts(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from accounts import ledger  # it needs the models

        ledger.follow()
