from pathlib import PurePosixPath

import pytest

from tests.unit.adapters.servers.nginx.layouts import MAIN, PID_FILE, make_host
from tests.unit.adapters.servers.php_fpm.layouts import SHOP_AND_BLOG
from tests.unit.adapters.servers.php_fpm.layouts import host_of as php_host
from tuner import plugins
from tuner.adapters.servers.nginx import Nginx
from tuner.deploy.discovery import aim_servers, find_installed, leave_out_bounded, read_pid
from tuner.errors import TargetError
from tuner.kit.programs import drop_lines
from tuner.ports import FileState, SentRequest
from tuner.testing.fakes import completed


@pytest.mark.parametrize("printed", ["", "0", "-1", "\u00b2", "\u0661", "1e3", "9" * 5000, "1 2"])
def test_an_id_that_no_kernel_gives_is_no_process(printed: str):
    assert read_pid(completed(stdout=printed.encode())) is None


@pytest.mark.parametrize(
    "warning",
    [
        'duplicate MIME type "text/html" in /etc/nginx/nginx.conf:{}',
        "[OCSP Stapling] does not work with this certificate, in /etc/h2o/h2o.conf:{}",
        "[h2o.conf:{}] something is not as it was",
        "AH00112: Warning: DocumentRoot [/srv/a] does not exist, on line {} of /etc/apache2/a.conf",
        "config : parsing [/etc/haproxy/haproxy.cfg:{}] : 'option httplog' is not usable with proxy 'a'",
        "config : a 'http-request' rule placed after a 'use_backend' rule at /etc/haproxy/conf.d/a.cfg:{}:3",
        "[/etc/php/8.2/fpm/pool.d/www.conf:{}] unknown entry 'a'",
        "a value is deprecated in /etc/php/8.2/fpm/php.ini on line {}",
    ],
)
def test_a_warning_is_the_same_wherever_its_line_has_moved(warning: str):
    assert drop_lines(warning.format(7)) == drop_lines(warning.format(1008))


@pytest.mark.parametrize(
    "warning",
    [
        'conflicting server name "a" on 0.0.0.0:{}, ignored',
        "upstream http://backend:{} is not known",
        'duplicate MIME type "text/{}" in /etc/nginx/nginx.conf:7',
        "listen [::]:{} is taken",
        "/etc/nginx/a{}.conf:7 is odd",
    ],
)
def test_a_warning_of_another_port_or_file_is_another(warning: str):
    assert drop_lines(warning.format(80)) != drop_lines(warning.format(81))


SERVING = b"events { }\nhttp { server { listen 80; } }\n"


def test_a_server_that_stays_in_the_foreground_is_refused_before_anything_is_touched():
    host = make_host({MAIN: b"worker_processes 2;\ndaemon off;\n" + SERVING})

    with pytest.raises(TargetError, match=r"would not return \(`daemon off;` in /etc/nginx/nginx\.conf:2\)"):
        find_installed(host, {"nginx": Nginx()})


def test_an_option_that_keeps_it_in_the_foreground_is_seen_in_its_process():
    host = make_host({MAIN: SERVING})
    started = b"nginx: master process nginx -g daemon off;\0"
    host.files |= {
        PID_FILE: FileState(content=b"1\n"),
        PurePosixPath("/proc/1/cmdline"): FileState(content=started),
    }

    with pytest.raises(TargetError, match=r"process 1 was started with `-g 'daemon off;'`"):
        find_installed(host, {"nginx": Nginx()})


def test_under_systemd_it_may_stay_in_the_foreground():
    units = {"/run/systemd/system": 0, "/usr/lib/systemd/system/nginx.service": 0}
    service = Nginx().find(make_host({MAIN: b"daemon off;\n" + SERVING}, answers=units)).service

    assert service is not None
    assert service.stays == ""


SITES = b"""\
events { }
http {
    upstream blog { server unix:/run/php/blog.sock; }
    server {
        listen 80;
        location ^~ /blog/ { fastcgi_pass blog; }
        location ~ [.]php$ { fastcgi_pass 127.0.0.1:9000; }
    }
}
"""


@pytest.mark.parametrize("tuned", [("nginx", "php-fpm"), ("php-fpm",)])
@pytest.mark.parametrize(("path", "children"), [("/index.php", 7), ("/blog/index.php", 8)])
def test_the_pool_is_tuned_that_the_web_server_passes_the_page_to(
    tuned: tuple[str, ...], path: str, children: int
):
    host, programs = make_host({MAIN: SITES}), php_host(SHOP_AND_BLOG)
    host.commands = {**programs.commands, **host.commands}
    host.commands |= {"cat": lambda _host, argv, _stdin: completed(argv, stdout=b"1\n")}
    host.files |= programs.files
    servers = find_installed(host, {name: plugins.make_installed_server(name) for name in tuned})
    sent = SentRequest(scheme="http", addresses=("127.0.0.1",), port=80, host="localhost", path=path)

    found = aim_servers(servers, [sent], host)[-1]

    assert found.installation.facts.current["pm.max_children"] == children


def test_a_process_that_its_pid_file_does_not_name_is_told():
    host = make_host({MAIN: SERVING})
    host.commands |= {
        "cat": lambda *_: completed(returncode=1),
        "pgrep": lambda *_: completed(stdout=b"77\n"),
    }

    with pytest.raises(TargetError, match=r"runs as process 77, but /run/nginx\.pid names no such process"):
        find_installed(host, {"nginx": Nginx()})


@pytest.mark.parametrize(
    ("granted", "reason"),
    [(524288, "its file says 1000000, but the kernel grants only 524288"), (1000000, None)],
)
def test_a_limit_that_the_kernel_never_granted_is_left_out_with_both_values(granted: int, reason: str | None):
    host = make_host({MAIN: b"worker_rlimit_nofile 1000000;\n" + SERVING})
    limits = f"Max open files            {granted}              {granted}              files\n"
    host.commands |= {
        "cat": lambda *_: completed(stdout=b"1\n"),
        "pgrep": lambda *_: completed(returncode=1),
        "ss": lambda *_: completed(),
    }
    host.files |= {
        PurePosixPath(path): FileState(content=content)
        for path, content in {
            "/proc/1/task/1/children": b"2",
            "/proc/1/cmdline": b"nginx: master process nginx\0",
            "/proc/2/cmdline": b"nginx: worker process\0",
            "/proc/2/limits": limits.encode(),
        }.items()
    }

    (found,) = leave_out_bounded(host, find_installed(host, {"nginx": Nginx()}))

    facts = found.installation.facts
    assert facts.current["worker_rlimit_nofile"] == granted
    assert facts.withheld.get("worker_rlimit_nofile") == reason
