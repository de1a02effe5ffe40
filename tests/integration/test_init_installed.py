"""Study files that `tuner init` writes for what cannot serve alone: `tuner check` accepts them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command_line import TUNER
from tests.testbed.host import PHP_SITE

pytestmark = pytest.mark.more

# In namespaces of its own, with new directories over those that services write into.
APART = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec")
# What a check of an installed service leaves on its host
OWN_STATE = "mkdir -p /var/lib/tuner\nmount -t tmpfs tmpfs /var/lib/tuner"
PROGRAM = "$(ls /usr/sbin/php-fpm[0-9]* | tail -n 1)"
SERVE = f"""
ip link set lo up
for place in /run /var/log /var/lib/nginx /etc/nginx/conf.d /srv; do mount -t tmpfs tmpfs $place; done
mkdir /run/php /var/log/nginx
socket=$(sed -n 's/^listen = //p' /etc/php/*/fpm/pool.d/www.conf | tail -n 1)
sed "s|SOCKET|$socket|" site.conf > /etc/nginx/conf.d/php.conf
echo '<?php echo 1;' > /srv/page.php
{PROGRAM} --daemonize
nginx
"""


def run_apart(folder: Path, script: str) -> "subprocess.CompletedProcess[str]":
    (folder / "site.conf").write_text(PHP_SITE.format(port=8000, root="/srv", socket="SOCKET"))
    return subprocess.run(
        [*APART, f"{OWN_STATE}\n{script}"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "TUNER_STATE": str(folder / "state")},
    )  # fmt: skip


def test_a_running_php_fpm_gets_a_managed_study_that_a_check_accepts(tmp_path: Path):
    url = "http://127.0.0.1:8000/page.php"
    done = run_apart(tmp_path, f"{SERVE}\n{TUNER} init php-fpm --url {url}\n{TUNER} check php-fpm.yaml")

    assert done.returncode == 0, done.stderr
    assert "ready      tuner run php-fpm.yaml" in done.stdout
    assert "mode: managed" in (tmp_path / "php-fpm.yaml").read_text()


def test_php_fpm_without_a_page_of_its_own_gets_a_study_of_a_private_instance_behind_a_web_server(
    tmp_path: Path,
):
    done = run_apart(tmp_path, f"{TUNER} init php-fpm\n{TUNER} check php-fpm.yaml")

    assert done.returncode == 0, done.stderr
    assert "ready      tuner run php-fpm.yaml" in done.stdout
    assert "servers: [apache, php-fpm]" in (tmp_path / "php-fpm.yaml").read_text()
    assert "path: /page.php" in (tmp_path / "php-fpm.yaml").read_text()


@pytest.mark.parametrize(
    ("prepare", "arguments", "code", "words"),
    [
        (SERVE, "--url http://127.0.0.1:8000/none.php", 3, "answered 404"),
        ("mount -t tmpfs tmpfs /run", "--url http://127.0.0.1/", 3, "does not run. Start the service first"),
    ],
    ids=["the page does not answer", "php-fpm does not run"],
)
def test_init_says_what_is_missing_and_writes_nothing(tmp_path: Path, prepare, arguments, code, words):
    done = run_apart(tmp_path, f"{prepare}\n{TUNER} init php-fpm {arguments}")

    assert done.returncode == code
    assert words in done.stderr
    assert not (tmp_path / "php-fpm.yaml").exists()


def test_settings_of_the_kernel_get_a_study_in_which_a_server_serves(tmp_path: Path):
    done = run_apart(tmp_path, f"{TUNER} init sysctl\n{TUNER} check sysctl.yaml")

    assert done.returncode == 0, done.stderr
    assert "ready      tuner run sysctl.yaml" in done.stdout


OWN_CERTIFICATE = """
ip link set lo up
for place in /run /var/log /var/lib/nginx /etc/nginx/conf.d /etc/nginx/sites-enabled /srv
do mount -t tmpfs tmpfs $place; done
mkdir /var/log/nginx
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=shop.test -addext subjectAltName=DNS:shop.test \\
  -keyout /srv/key.pem -out /srv/own.pem 2>/dev/null
echo shop > /srv/index.html
cp shop.conf /etc/nginx/conf.d/
mount --bind hosts /etc/hosts
nginx
"""
SHOP = """\
server { listen 80 default_server; server_name shop.test; return 301 https://shop.test$request_uri; }
server { listen 443 ssl; server_name shop.test; root /srv;
         ssl_certificate /srv/own.pem; ssl_certificate_key /srv/key.pem; }
"""


@pytest.mark.parametrize("asked", ["", "--url https://shop.test/", "--url http://shop.test/"])
def test_a_certificate_that_nobody_trusts_is_named_in_the_study_with_what_to_do(tmp_path: Path, asked: str):
    (tmp_path / "shop.conf").write_text(SHOP)
    (tmp_path / "hosts").write_text("127.0.0.1 localhost shop.test\n")
    init = f"{TUNER} init nginx --managed {asked}"
    check = f"sed -i s#verify:.*#ca:\\ /srv/own.pem# nginx.yaml\n{TUNER} check nginx.yaml --json"
    done = run_apart(tmp_path, f"{OWN_CERTIFICATE}\n{init}\ncp nginx.yaml written\n{check}")

    assert done.returncode == 0, done.stderr
    study = (tmp_path / "written").read_text()
    assert 'path: "https://shop.test/"' in study
    assert "\n  verify: false\n" in study
    for told in (done.stderr.replace("\n", " "), study.replace("\n  #", "")):
        assert "write `ca: FILE` in its place: the file of the certificate authority" in told
    checked = json.loads(done.stdout[done.stdout.index("{") :])
    assert not [each for each in checked["warnings"] if "certificate" in each]


def test_a_site_whose_name_leads_nowhere_gets_a_study_that_says_so(tmp_path: Path):
    (tmp_path / "shop.conf").write_text(SHOP)
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n")
    done = run_apart(tmp_path, f"{OWN_CERTIFICATE}\n{TUNER} init nginx --managed")

    assert done.returncode == 0, done.stderr
    assert "Could not resolve host" in done.stderr
    assert "add it to /etc/hosts" in done.stderr
    study = (tmp_path / "nginx.yaml").read_text()
    assert 'path: "https://shop.test/"' in study
    assert "  # https://shop.test/ gives no answer" in study


def test_a_private_instance_needs_no_page(tmp_path: Path):
    done = run_apart(tmp_path, f"{TUNER} init nginx --url http://127.0.0.1/")

    assert done.returncode == 2
    assert "Leave --url out" in done.stderr


CROWD = """
import socket
held = []
while True:
    try:
        held.append(socket.create_connection(("127.0.0.1", 80), timeout=1))
        held[-1].sendall(b"GET / HTTP/1.1\\r\\n")
    except OSError:
        pass
    del held[:-60]
"""
CROWDED = """
ip link set lo up
for place in /run /var/log /var/lib/nginx; do mount -t tmpfs tmpfs $place; done
mkdir /var/log/nginx
cp -a /etc/nginx own
sed -i 's/worker_connections .*/worker_connections 20;/' own/nginx.conf
mount --bind own /etc/nginx
nginx
python3 crowd.py & crowd=$!
until grep -q 'worker_connections are not enough$' /var/log/nginx/error.log; do sleep 0.05; done
kill $crowd
"""


def test_a_study_from_advice_tries_first_what_lifts_the_limit(tmp_path: Path):
    (tmp_path / "crowd.py").write_text(CROWD)

    done = run_apart(tmp_path, f"{CROWDED}\n{TUNER} init nginx --from-advice\n{TUNER} check nginx.yaml")

    assert done.returncode == 0, done.stderr
    assert "tries these values first: worker_connections" in done.stderr
    study = (tmp_path / "nginx.yaml").read_text()
    assert "mode: managed" in study
    assert "constraints: [failure_rate <= 0.001 unlike default]" in study
    assert '"worker_connections": {value: 4096, odds: 3, source: "tuner advise: ' in study
    assert "# now: Limit of connections per worker: worker_connections 20" in study


LOGGED_SITE = """\
log_format timed '$remote_addr "$request" $status $body_bytes_sent $time_iso8601 '
                 '$request_time $connection_requests';
server { listen 8000; root /srv; access_log /var/log/nginx/timed.log timed; }
"""
SERVE_LOGGED = """
ip link set lo up
for place in /run /var/log /var/lib/nginx /etc/nginx/conf.d /srv; do mount -t tmpfs tmpfs $place; done
mkdir /var/log/nginx
cp logged.conf /etc/nginx/conf.d/
for page in index a b; do echo $page > /srv/$page.html; done
nginx
for page in a.html?who=S3CRET b.html none.html; do
  url=http://127.0.0.1:8000/$page
  curl -s $url $url $url >/dev/null
done
"""


def test_the_log_of_an_installed_nginx_gives_its_load_in_the_format_of_its_own_files(tmp_path: Path):
    (tmp_path / "logged.conf").write_text(LOGGED_SITE)
    init = f"{TUNER} init nginx --managed --url http://127.0.0.1:8000/"
    log = "/var/log/nginx/timed.log"
    made = f"{init} --from {log} --check-log {log} -o own.yaml\n{init} --from host:{log} -o host.yaml"
    done = run_apart(tmp_path, f"{SERVE_LOGGED}\n{made}\n{init} -o plain.yaml\n{TUNER} check own.yaml --json")

    assert done.returncode == 0, done.stderr
    assert "The server logs to /var/log/nginx/timed.log." in done.stderr
    checked = json.loads(done.stdout[done.stdout.index("{") :])
    assert checked["mix"].keys() == {"", "requests of timed.log"}
    assert checked["mix"]["requests of timed.log"]["as_expected"] > 0.99
    study = (tmp_path / "own.yaml").read_text()
    assert study.count('{path: "/none.html", weight: 3, status: 404}') == 2
    assert (tmp_path / "host.yaml").read_text().count('{path: "/none.html", weight: 3, status: 404}') == 1
    assert "3 requests per connection" in study
    assert "S3CRET" not in study
