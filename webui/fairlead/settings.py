"""Settings of the web UI: secure as they stand; the environment says where things are.

FAIRLEAD_DATA        folder of the database, the secret key and the backups (default: build/dev)
FAIRLEAD_RUN         folder of the applier's socket and of the fault file (default: build/dev/run)
FAIRLEAD_LEDGER      file of the users and tokens of both slots (default: beside the database)
FAIRLEAD_UPLOADS     folder where uploaded bundles wait for the applier (default: build/dev/uploads)
FAIRLEAD_STATIC      where collectstatic puts the files that nginx serves
FAIRLEAD_ASSETS      the third-party files of `make assets` (default: build/assets)
FAIRLEAD_GUIDE       the rendered guide of `make guide` (default: build/guide.json)
FAIRLEAD_PLAIN_HTTP  "1": cookies also without TLS; for developers and tests only
"""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

WEBUI = Path(__file__).resolve().parent.parent
REPO = WEBUI.parent
DATA = Path(os.environ.get("FAIRLEAD_DATA", REPO / "build" / "dev"))
RUN = Path(os.environ.get("FAIRLEAD_RUN", REPO / "build" / "dev" / "run"))
DATABASE = DATA / "fairlead.sqlite3"
BACKUPS = DATA / "backups"
NEW_DATABASE = Path(os.environ.get("FAIRLEAD_NEW_DATABASE", REPO / "build" / "new.sqlite3"))  # system.tables
INCOMING = DATA / "incoming"  # files on their way in (web.files) and out, and a backup file that was opened
LEDGER = Path(os.environ.get("FAIRLEAD_LEDGER", DATA / "ledger.json"))  # accounts.ledger
SECRET_KEY_FILE = DATA / "secret-key"
CONSOLE_TOKEN_FILE = RUN / "web" / "console-token"  # made anew by `manage.py prepare`; for root's `fairlead` command
FAULT_FILE = RUN / "web" / "fault"  # written by `manage.py prepare`; its text is shown on every page

PLAIN_HTTP = os.environ.get("FAIRLEAD_PLAIN_HTTP") == "1"
DEBUG = False


def _secret_key() -> str:
    """The box's own key, made by `manage.py prepare`.

    Without the file (a damaged partition, the build of the image) a key that ends with this process
    does: the fault page must be served even then.
    """
    try:
        key = SECRET_KEY_FILE.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return get_random_secret_key()
    except OSError as error:
        raise ImproperlyConfigured(f"cannot read {SECRET_KEY_FILE}: {error.strerror}") from error
    return key or get_random_secret_key()


SECRET_KEY = _secret_key()

# The box is reached by whatever address or name its network gives it. No page, cookie or mail is
# built from the Host header, and only nginx reaches this process.
ALLOWED_HOSTS = ["*"]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "accounts",
    "api",
    "balancing",
    "network",
    "firewall",
    "draft",
    "changes",
    "monitoring",
    "system",
    "guide",
    "search",
]

MIDDLEWARE = [
    "web.middleware.ClientAddress",
    "web.middleware.ResponseHeaders",
    "web.middleware.HostName",
    "web.middleware.FaultFile",
    "accounts.middleware.LedgerFirst",
    "api.middleware.NoCookies",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "accounts.middleware.SessionEnd",
    "accounts.middleware.SetUpFirst",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    # Behind the log-in: its token may be in the body, and of a stranger no body is read.
    "django.middleware.csrf.CsrfViewMiddleware",
    "changes.middleware.DraftFirst",
    "changes.desk.AtTheDesk",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
    "web.kept_input.GiveBack",
]

ROOT_URLCONF = "fairlead.urls"
WSGI_APPLICATION = "fairlead.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [WEBUI / "fairlead" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "draft.frame.frame",
                "changes.desk.place",
                "guide.places.place",
            ],
        },
    },
]

# Every commit reaches the disk before the page says "saved": the power may go at any moment.
# IMMEDIATE: a writer waits its turn (5 s) at BEGIN, and not half-way through with a "locked" error.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATABASE,
        # kept open: with a full partition SQLite could not open it again, and nobody could even look
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 5,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {
    "default": {
        "BACKEND": "web.cache.SteadyCache",
        "OPTIONS": {"MAX_ENTRIES": 20_000},  # failed log-ins; too many to push one's own out
    }
}

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
PASSWORD_HASHERS = ["accounts.limits.FewAtOnce"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"

# Lock-out: a name at a source (lbconfig.model.addresses), so that nobody locks the admin out from elsewhere. Kept in
# the memory of the one web process: a guesser can fill neither the database nor the disk. Whatever the name,
# accounts.limits bounds how many are tried.
AXES_HANDLER = "axes.handlers.cache.AxesCacheHandler"
AXES_FAILURE_LIMIT = 6
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_CALLABLE = "accounts.views.locked_out"
AXES_RESET_ON_SUCCESS = True
AXES_CLIENT_IP_CALLABLE = "accounts.middleware.client_source"
AXES_VERBOSE = False

SESSION_ENGINE = "accounts.session_store"
SESSION_COOKIE_NAME = "fairlead" if PLAIN_HTTP else "__Host-fairlead"
SESSION_COOKIE_SECURE = not PLAIN_HTTP
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Strict"
SESSION_COOKIE_AGE = 12 * 3600  # also the longest that a log-in lasts (accounts.sessions)
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
IDLE_MINUTES = 30  # accounts.sessions; the pages that poll do not count
CSRF_COOKIE_NAME = "fairlead-csrf" if PLAIN_HTTP else "__Host-fairlead-csrf"
CSRF_COOKIE_SECURE = not PLAIN_HTTP
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Strict"
CSRF_FAILURE_VIEW = "web.faults.csrf_failure"

# nginx sets the header itself and drops what the client sent; nobody else reaches the UNIX socket.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SILENCED_SYSTEM_CHECKS = [
    "axes.W001",  # lock-outs live in the memory of a process, and there is one process (see AXES_HANDLER)
    "security.W004",  # no HSTS: with the box's own self-signed certificate it would lock the admin out
    "security.W008",  # no redirect to TLS: nginx listens on 443 alone
]

DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024  # bytes
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000  # a service with 1000 real servers
DATA_UPLOAD_MAX_NUMBER_FILES = 2  # a certificate and its key
# No form takes a file: one that is sent anyway is dropped, and fills no disk.
FILE_UPLOAD_HANDLERS: list[str] = []
UPLOADS = Path(os.environ.get("FAIRLEAD_UPLOADS", REPO / "build" / "dev" / "uploads"))  # bundles, on their way

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "Etc/UTC"  # of the time zones, the image has those of Etc
FORMAT_MODULE_PATH = "web.locales"

STATIC_URL = "/static/"
STATIC_ROOT = Path(os.environ.get("FAIRLEAD_STATIC", REPO / "build" / "static"))
ASSETS = Path(os.environ.get("FAIRLEAD_ASSETS", REPO / "build" / "assets"))
GUIDE = Path(os.environ.get("FAIRLEAD_GUIDE", REPO / "build" / "guide.json"))
GUIDE_PICTURES = REPO / "docs" / "guide" / "pictures"  # not in the box: nginx serves what was collected
STATICFILES_DIRS = [
    WEBUI / "fairlead" / "static",
    *([("vendor", ASSETS / "vendor")] if ASSETS.is_dir() else []),
    *([("guide", GUIDE_PICTURES)] if GUIDE_PICTURES.is_dir() else []),
]

FORM_RENDERER = "django.forms.renderers.DjangoTemplates"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{levelname} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        # Who asks for what is not there pushes nothing out of the box's log.
        "django.request": {"level": "ERROR"},
        "django.server": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "axes": {"level": "WARNING"},
    },
}
