"""The web process behind nginx: one worker with eight threads.

The database is made ready in the process that serves, before it serves: on a slow machine loading Django
a second time would cost seconds of every start.
"""

bind = "unix:/run/fairlead/web/web.sock"
umask = 0o007  # nginx is in the socket's group
worker_class = "gthread"
workers = 1
threads = 8
timeout = 60  # seconds
worker_tmp_dir = "/dev/shm"  # noqa: S108 # its heartbeat: never on a disk
control_socket_disable = True
preload_app = True
wsgi_app = "fairlead.wsgi"


def post_worker_init(worker):
    from threading import Thread

    from accounts import tokens
    from system import together

    Thread(target=tokens.watch, name="tokens", daemon=True).start()
    Thread(target=together.watch, name="together", daemon=True).start()


def on_starting(server):
    import django
    from django.core.management import call_command

    django.setup()
    call_command("prepare")
