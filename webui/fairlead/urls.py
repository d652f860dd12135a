"""Every page of the web UI."""

from django.urls import path, re_path, register_converter
from django.urls.converters import StringConverter

from accounts import views as accounts
from api import views as api
from api.endpoint import endpoint
from balancing import policy, sorry
from balancing import views as balancing
from changes import confirm, history, transfer
from changes import views as changes
from firewall import views as firewall
from guide import views as guide
from monitoring import drift
from monitoring import views as monitoring
from network import certificate_views
from network import views as network
from search import views as search
from system import backup_views, capacity, hardware, pair, pairing, replacing, tuning, updates
from system import views as system


class Slot(StringConverter):
    regex = "[AB]"


register_converter(Slot, "slot")

handler400 = "web.faults.bad_request"
handler404 = "web.faults.not_found"
handler500 = "web.faults.server_error"

urlpatterns = [
    path("", monitoring.overview, name="overview"),
    path("live/overview/", monitoring.live_overview, name="live-overview"),
    path("drift/", drift.drift, name="drift"),
    path("drift/look/", drift.look, name="drift-look"),
    path("drift/repair/", drift.repair, name="drift-repair"),
    path("live/drift/", drift.live_drift, name="live-drift"),
    path("set-up/", accounts.set_up, name="set-up"),
    path("login/", accounts.LogIn.as_view(), name="login"),
    path("logout/", accounts.log_out, name="logout"),
    path("password/", accounts.change_password, name="password"),
    path("services/add/", balancing.add, name="service-add"),
    path("services/detection/", balancing.detection, name="service-detection"),
    path("services/<int:pk>/", balancing.edit, name="service-edit"),
    path("services/<int:pk>/delete/", balancing.delete, name="service-delete"),
    path("services/try/", balancing.try_check, name="check-try-new"),
    path("services/<int:pk>/try/", balancing.try_check, name="check-try"),
    path("services/<int:pk>/doctor/", balancing.doctor, name="doctor"),
    path("services/<int:pk>/servers/", balancing.servers, name="service-servers"),
    path("services/<int:pk>/servers/<str:address>/script/", balancing.server_script, name="server-script"),
    path("servers/operate/", balancing.operate, name="operate"),
    path("servers/<str:address>/", balancing.server, name="server"),
    path("connections/", policy.edit, name="policy"),
    path("sorry/", sorry.edit, name="sorry"),
    path("sorry/preview/", sorry.preview, name="sorry-preview"),
    path("network/", network.edit_network, name="network"),
    path("network/routes/", network.edit_routes, name="routes"),
    path("network/names/", network.edit_names, name="names"),
    path("access/", network.edit_access, name="access"),
    path("access/certificate/", certificate_views.edit_certificate, name="certificate"),
    path("firewall/", firewall.overview, name="firewall"),
    path("firewall/add/", firewall.add, name="rule-add"),
    path("firewall/test/", firewall.test, name="firewall-test"),
    path("firewall/<int:pk>/", firewall.edit, name="rule-edit"),
    path("firewall/<int:pk>/delete/", firewall.delete, name="rule-delete"),
    path("firewall/<int:pk>/move/", firewall.move, name="rule-move"),
    path("firewall/<int:pk>/switch/", firewall.switch, name="rule-switch"),
    path("changes/", changes.review, name="review"),
    path("changes/cards/", changes.take_cards, name="review-cards"),
    path("changes/apply/", changes.apply, name="apply"),
    path("changes/confirm/", confirm.keep, name="keep"),
    path("changes/take-back/", confirm.take_back, name="take-back"),
    path("confirm/<slug:secret>/", confirm.arrive, name="arrive"),
    path("changes/discard/", changes.discard, name="discard"),
    path("changes/progress/<str:apply_id>/", changes.progress, name="progress"),
    path("live/progress/<str:apply_id>/", changes.live_progress, name="live-progress"),
    path("history/", history.history, name="history"),
    path("history/keep/", history.keep, name="history-keep"),
    path("history/compare/", history.compare, name="compare"),
    path("history/<int:number>/", history.revision, name="revision"),
    path("history/<int:number>/comment/", history.comment, name="revision-comment"),
    path("history/<int:number>/restore/", history.restore, name="revision-restore"),
    path("configuration/", transfer.overview, name="transfer"),
    path("configuration/export/<str:key>/", transfer.export, name="export"),
    path("configuration/import/", transfer.import_file, name="import"),
    path("configuration/import/review/", transfer.review_import, name="import-review"),
    path("configuration/schema.json", transfer.published_schema, name="schema"),
    path("help/", guide.page, name="help"),
    path("help/<slug:name>/", guide.page, name="help-page"),
    path("search/", search.search, name="search"),
    path("system/", system.overview, name="system"),
    path("system/hardware/", hardware.overview, name="hardware"),
    path("system/hardware/tune/", hardware.tune, name="hardware-tune"),
    path("system/hardware/settings/", tuning.edit, name="tuning"),
    path("live/hardware/", hardware.live_findings, name="live-hardware"),
    path("system/backup/", backup_views.backup, name="backup"),
    path("system/backup/restore/", backup_views.restore, name="restore"),
    path("system/backup/restore/review/", backup_views.restore_review, name="restore-review"),
    path("system/backup/restored/", backup_views.restored, name="restored"),
    path("system/reset/", backup_views.factory_reset, name="factory-reset"),
    path("set-up/restore/", backup_views.set_up_restore, name="set-up-restore"),
    path("set-up/restore/code/", backup_views.set_up_restore_code, name="set-up-restore-code"),
    path("system/updates/", updates.overview, name="updates"),
    path("system/updates/upload/", updates.upload, name="update-upload"),
    path("system/updates/review/", updates.review, name="update-review"),
    path("system/updates/install/", updates.install, name="update-install"),
    path("system/updates/seen/", updates.seen, name="update-seen"),
    path("system/updates/restart/<slot:slot>/", updates.restart, name="update-restart"),
    path("system/updates/restarting/<slot:slot>/", updates.restarting, name="update-restarting"),
    path("live/updates/", updates.live, name="live-updates"),
    path("live/updates/sticks/", updates.sticks, name="live-sticks"),
    path("live/updates/restarting/<slot:slot>/", updates.live_restarting, name="live-restarting"),
    path("system/capacity/", capacity.overview, name="capacity"),
    path("system/capacity/watch/", capacity.watch, name="capacity-watch"),
    path("system/capacity/between/", capacity.between, name="capacity-between"),
    path("system/capacity/stop/", capacity.stop, name="capacity-stop"),
    path("live/capacity/", capacity.live, name="live-capacity"),
    path("system/pair/", pair.overview, name="pair"),
    path("system/pair/hand-over/", pair.hand_over, name="pair-hand-over"),
    path("system/pair/drill/", pair.drill, name="pair-drill"),
    path("system/pair/hold/", pair.hold, name="pair-hold"),
    path("system/pair/release/", pair.release, name="pair-release"),
    path("system/pair/choose/", pair.choose, name="pair-choose"),
    path("system/pair/replace/", replacing.replace, name="pair-replace"),
    path("system/pair/replace/code/", replacing.code, name="pair-replace-code"),
    path("live/pair/replace/", replacing.live, name="live-pair-replace"),
    path("system/pair/leave/", pair.leave, name="pair-leave"),
    path("system/pair/alone/", pair.alone, name="pair-alone"),
    path("system/pair/drafts/<int:pk>/", pair.draft, name="pair-draft"),
    path("system/pair/drafts/<int:pk>/forget/", pair.forget_draft, name="pair-draft-forget"),
    path("system/pair/update/", pair.update, name="pair-update"),
    path("system/pair/update/choose/", pair.update_choose, name="pair-update-choose"),
    path("live/pair/", pair.live, name="live-pair"),
    path("system/pair/make/", pairing.make, name="pair-make"),
    path("system/pair/make/code/", pairing.invite, name="pair-code"),
    path("system/pair/join/", pairing.join, name="pair-join"),
    path("system/pair/forget/", pairing.forget, name="pair-forget"),
    path("live/pair/code/", pairing.live, name="live-pair-code"),
    path("live/pair/joined/", pairing.live_link, name="live-pair-joined"),
    path("system/api/", api.page, name="api"),
    path("system/api/openapi.json", api.openapi, name="api-document"),
    path("system/api/tokens/", api.make_token, name="token-make"),
    path("system/api/tokens/<int:pk>/revoke/", api.revoke_token, name="token-revoke"),
    re_path(r"^api/v1(?:/(?P<rest>(?s:.*)))?\Z", endpoint, name="api-v1"),
]
