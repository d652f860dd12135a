from django.apps import AppConfig
from django.db.models.signals import post_migrate


class DraftConfig(AppConfig):
    name = "draft"

    def ready(self) -> None:
        post_migrate.connect(upgrade, sender=self)


def upgrade(using: str, **rest: object) -> None:
    """Whenever tables are brought to this software, so are the documents in them: of this box, and of a backup."""
    from draft import store  # only here: the tables are known by now

    store.upgrade(using)
