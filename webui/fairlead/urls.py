"""Every page of the web UI."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from accounts import views as accounts
from api import updates as api_updates
from balancing import policy, sorry
from balancing import views as balancing
from changes import confirm
from changes import views as changes
from monitoring import views as monitoring
from network import views as network
from system import updates
from system import views as system


class Slot(StringConverter):
    regex = "[AB]"


register_converter(Slot, "slot")

handler404 = "fairlead.faults.not_found"
handler500 = "fairlead.faults.server_error"

urlpatterns = [
    path("", monitoring.overview, name="overview"),
    path("live/overview/", monitoring.live_overview, name="live-overview"),
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
    path("access/", network.edit_access, name="access"),
    path("changes/", changes.review, name="review"),
    path("changes/apply/", changes.apply, name="apply"),
    path("changes/confirm/", confirm.keep, name="keep"),
    path("changes/take-back/", confirm.take_back, name="take-back"),
    path("confirm/<slug:secret>/", confirm.arrive, name="arrive"),
    path("changes/discard/", changes.discard, name="discard"),
    path("changes/progress/<str:apply_id>/", changes.progress, name="progress"),
    path("live/progress/<str:apply_id>/", changes.live_progress, name="live-progress"),
    path("history/", changes.history, name="history"),
    path("history/<int:number>/", changes.revision, name="revision"),
    path("system/", system.overview, name="system"),
    path("system/updates/", updates.overview, name="updates"),
    path("system/updates/upload/", updates.upload, name="update-upload"),
    path("system/updates/review/", updates.review, name="update-review"),
    path("system/updates/install/", updates.install, name="update-install"),
    path("system/updates/seen/", updates.seen, name="update-seen"),
    path("system/updates/restart/<slot:slot>/", updates.restart, name="update-restart"),
    path("system/updates/restarting/<slot:slot>/", updates.restarting, name="update-restarting"),
    path("system/updates/tokens/", updates.make_token, name="token-make"),
    path("system/updates/tokens/<int:pk>/revoke/", updates.revoke_token, name="token-revoke"),
    path("live/updates/", updates.live, name="live-updates"),
    path("live/updates/sticks/", updates.sticks, name="live-sticks"),
    path("live/updates/restarting/<slot:slot>/", updates.live_restarting, name="live-restarting"),
    path("api/v1/update", api_updates.update, name="api-update"),
    path("api/v1/update/restart", api_updates.restart, name="api-update-restart"),
]
