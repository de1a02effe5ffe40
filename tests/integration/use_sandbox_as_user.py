"""Does, as an ordinary user, what a study does in a sandbox, and prints what came out. Run as a program."""

import json
import os
import resource
import sys
from pathlib import PurePosixPath

from tuner.adapters.hosts.local import LocalHost
from tuner.errors import ConfigRejected
from tuner.ports import FileState

SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")
IDENTIFY_PROC = ("stat", "-c", "%d", "/proc")
NGINX = """
daemon off;
pid {0}/nginx.pid;
error_log {0}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {0}/body; proxy_temp_path {0}/proxy; fastcgi_temp_path {0}/fastcgi;
  uwsgi_temp_path {0}/uwsgi; scgi_temp_path {0}/scgi;
  server {{ listen 8080 backlog=3000; location / {{ return 200 "hello"; }} }}
}}
"""
CURL = ("curl", "-q", "-sS", "--retry", "50", "--retry-connrefused", "--retry-delay", "0", "--noproxy", "*")


def main() -> None:
    """Run nginx with a kernel setting of its own and ask it."""
    with LocalHost().sandbox() as sandbox:
        sandbox.write(SOMAXCONN, FileState(content=b"777"))
        conf = sandbox.directory / "nginx" / "nginx.conf"
        sandbox.write(conf, FileState(content=NGINX.format(conf.parent).encode()))
        command = ("nginx", "-e", f"{conf.parent}/error.log", "-c", str(conf))
        process = sandbox.start(command, open_files=500)
        page = sandbox.run((*CURL, "http://127.0.0.1:8080/"), timeout_s=10)
        queue = sandbox.run(("ss", "-ltnH", "sport = :8080"), timeout_s=5).stdout.split()
        limits = sandbox.read(PurePosixPath(f"/proc/{process.pid}/limits")).content or b""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        try:
            sandbox.start(("true",), open_files=hard + 1)
            refusal = ""
        except ConfigRejected as error:
            refusal = str(error)
        result = {
            "uid": os.getuid(),
            "page": page.stdout.decode() or page.stderr.decode(),
            "somaxconn": (sandbox.read(SOMAXCONN).content or b"").decode().strip(),
            "backlog": int(queue[2]) if len(queue) > 2 else process.output().decode(),
            "open_files": next(row for row in limits.decode().splitlines() if "open files" in row).split()[3],
            "refusal": refusal,
            "alive": process.poll() is None,
            "sees_host": sandbox.run(IDENTIFY_PROC, timeout_s=5).stdout
            == LocalHost().run(IDENTIFY_PROC, timeout_s=5).stdout,
        }
    result["ended"] = process.poll() is not None
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
