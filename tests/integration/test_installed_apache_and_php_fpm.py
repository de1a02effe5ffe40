"""Installed services with other settings: what is active, read back from the real programs."""

from pathlib import Path, PurePosixPath

import pytest

from tests.installed import installed, put, run, sh
from tests.integration.waiting import wait_until
from tuner.adapters.servers.apache import Apache
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.ports import Config, Installation, Process, Sandbox

SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")
# Its own directory under /run is made by its first start as a service, which there may not have been.
APACHE_WRITES = ("/var/log/apache2", "/run", "/run/apache2", "/run/lock")


def start(sandbox: Sandbox, installation: Installation) -> Process:
    """Start the service in the foreground, as its control program does it."""
    process = sandbox.start((installation.service.check[0], "-DFOREGROUND"))
    wait_until(lambda: curl(sandbox, installation.port) == 0)
    return process


def curl(sandbox: Sandbox, port: int) -> int:
    return sandbox.run(("curl", "-s", f"http://127.0.0.1:{port}/"), timeout_s=10).returncode


def only_child(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def read_back(sandbox: Sandbox, config: Config, before: Installation, process: Process) -> Config:
    look = sandbox.look((), trees=(process.pid,))
    return Apache().in_force(sandbox, look, config, before, only_child(process.pid))


def test_a_drop_in_for_apache_is_in_force_after_a_start():
    with installed("/etc/apache2", empty=APACHE_WRITES) as sandbox:
        before = Apache().find(sandbox)
        config = {
            "ThreadsPerChild": 7, "MaxRequestWorkers": 21, "StartServers": 3, "MinSpareThreads": 5,
            "MaxSpareThreads": 40, "ListenBacklog": 300, "ListenCoresBucketsRatio": 0,
        }  # fmt: skip
        put(sandbox, Apache().rewrite(config, before))
        process = start(sandbox, before)
        expected = {name: config[name] for name in
                    ("ThreadsPerChild", "MaxRequestWorkers", "StartServers", "ListenBacklog",
                     "ListenCoresBucketsRatio")}  # fmt: skip

        wait_until(lambda: read_back(sandbox, config, before, process) == expected)


CONDITIONS = """\
LoadModule macro_module /usr/lib/apache2/modules/mod_macro.so
<IfModule mpm_event.c>
MaxRequestWorkers 75
</IfModule>
<IfFile apache2.conf>
ListenBacklog 300
</IfFile>
<Macro Sizes $threads $all>
<IfDirective MaxRequestWorkers>
ThreadsPerChild $threads
MaxRequestWorkers $all
</IfDirective>
</Macro>
Use Sizes 20 60
"""


def test_conditions_and_macros_are_read_as_the_running_apache_took_them():
    with installed("/etc/apache2", empty=APACHE_WRITES) as sandbox:
        put(sandbox, {PurePosixPath("/etc/apache2/conf-enabled/special.conf"): CONDITIONS.encode()})
        before = Apache().find(sandbox)
        process = start(sandbox, before)
        expected = {"ThreadsPerChild": 20, "MaxRequestWorkers": 60, "ListenBacklog": 300}

        assert {name: before.facts.current[name] for name in expected} == expected
        asked = {**expected, "ListenBacklog": 299}
        wait_until(lambda: read_back(sandbox, asked, before, process) == expected)


def test_two_addresses_with_one_port_are_no_two_listeners_for_the_same_connections():
    with installed("/etc/apache2", empty=APACHE_WRITES) as sandbox:
        sh(sandbox, "printf 'Listen 127.0.0.1:80\nListen 127.0.0.2:80\n' > /etc/apache2/ports.conf")
        before = Apache().find(sandbox)
        process = start(sandbox, before)
        config = {"ListenCoresBucketsRatio": 0, "ListenBacklog": 300}

        wait_until(lambda: read_back(sandbox, config, before, process) == {
            "ListenCoresBucketsRatio": 0, "ListenBacklog": 511,
        })  # fmt: skip


def test_what_apache_was_not_restarted_for_is_seen_not_to_be_in_force():
    with installed("/etc/apache2", empty=APACHE_WRITES) as sandbox:
        before = Apache().find(sandbox)
        process = start(sandbox, before)
        asked = {"ThreadsPerChild": 7, "MaxRequestWorkers": 21, "StartServers": 2, "ListenBacklog": 300}

        wait_until(lambda: read_back(sandbox, asked, before, process) == {
            "ThreadsPerChild": 25, "MaxRequestWorkers": 150, "StartServers": 2, "ListenBacklog": 511,
        })  # fmt: skip


def run_php_fpm(sandbox: Sandbox, installation: Installation) -> Process:
    """Start php-fpm with its own files, in the foreground."""
    process = sandbox.start((str(installation.facts.program), "--nodaemonize"))
    wait_until(
        lambda: (
            b"ready to handle connections" in sandbox.run(("cat", str(installation.log)), timeout_s=5).stdout
        )
    )
    return process


def php_fpm_in_a_sandbox():
    return installed("/etc/php", empty=["/var/log", "/run"])


ELSEWHERE = "/usr/local/etc"


# A relative pattern begins at the prefix that the program was built with.
MOVE_POOL = f"""
cd /etc/php/*/fpm && mv pool.d/www.conf {ELSEWHERE} && sed -i 's/^.www./[shop]/' {ELSEWHERE}/www.conf
sed -i 's|^include=.*|include=local/etc/*.conf|' php-fpm.conf
"""


@pytest.mark.parametrize("script", ["true", MOVE_POOL], ids=["packaged", "elsewhere"])
def test_a_drop_in_for_a_pool_is_in_force_after_a_start(script: str):
    with installed("/etc/php", empty=["/var/log", "/run", ELSEWHERE]) as sandbox:
        run(sandbox, "mkdir", "-p", "/run/php")
        sh(sandbox, script)
        before = PhpFpm().find(sandbox)
        config = {"pm": "static", "pm.max_children": 4, "pool.listen.backlog": 300, "rlimit_files": 2048}
        put(sandbox, PhpFpm().rewrite(config, before))
        process = run_php_fpm(sandbox, before)
        expected = {"pm.max_children": 4, "pool.listen.backlog": 300, "rlimit_files": 2048}

        wait_until(lambda: PhpFpm().in_force(sandbox, sandbox, config, before, process.pid) == expected)


def test_looking_at_php_fpm_and_checking_it_writes_nothing_into_its_log():
    with php_fpm_in_a_sandbox() as sandbox:
        before = PhpFpm().find(sandbox)
        checked = sandbox.run(before.service.check, timeout_s=10)

        assert checked.returncode == 0
        assert sandbox.run(("cat", str(before.log)), timeout_s=5).stdout == b""


def test_what_php_fpm_was_not_restarted_for_is_seen_not_to_be_in_force():
    with php_fpm_in_a_sandbox() as sandbox:
        run(sandbox, "mkdir", "-p", "/run/php")
        sh(sandbox, "sed -i 's/^listen = .*/listen = 127.0.0.1:9000/' /etc/php/*/fpm/pool.d/www.conf")
        before = PhpFpm().find(sandbox)
        process = run_php_fpm(sandbox, before)
        config = {"pm": "dynamic", "pm.start_servers": 3, "pool.listen.backlog": 300}
        somaxconn = int(sandbox.read(SOMAXCONN).content)

        wait_until(lambda: PhpFpm().in_force(sandbox, sandbox, config, before, process.pid) == {
            "pm.start_servers": 2, "pool.listen.backlog": somaxconn,
        })  # fmt: skip


def test_apache_without_a_status_page_is_read_back_without_its_scoreboard():
    with installed("/etc/apache2", empty=APACHE_WRITES) as sandbox:
        run(sandbox, "sh", "-c", "rm /etc/apache2/mods-enabled/status.*")
        before = Apache().find(sandbox)
        process = start(sandbox, before)
        config = {"ThreadsPerChild": 25, "MaxRequestWorkers": 150}

        wait_until(lambda: read_back(sandbox, config, before, process) == {"ThreadsPerChild": 25})

    assert "ExtendedStatus" not in before.facts.current


def answers(sandbox: Sandbox) -> bool:
    return curl(sandbox, 80) == 0


@pytest.mark.parametrize("script", ["with", "without"])
def test_apache_is_started_reloaded_and_stopped_by_its_service(script: str):
    scripts = [] if script == "with" else ["/etc/init.d"]
    with installed("/etc/apache2", empty=[*APACHE_WRITES, *scripts]) as sandbox:
        service = Apache().find(sandbox).service
        assert (service.stop[0] == "service") == (script == "with")

        run(sandbox, *service.start)
        wait_until(lambda: answers(sandbox))
        run(sandbox, *service.reload)
        wait_until(lambda: answers(sandbox))
        run(sandbox, *service.stop)
        run(sandbox, *service.stop)

        assert not answers(sandbox)


@pytest.mark.parametrize("script", ["with", "without"])
def test_php_fpm_is_started_and_stopped_by_its_service(script: str):
    scripts = [] if script == "with" else ["/etc/init.d"]
    with installed("/etc/php", empty=["/var/log", "/run", *scripts]) as sandbox:
        run(sandbox, "mkdir", "-p", "/run/php")
        service = PhpFpm().find(sandbox).service
        pool = ("pgrep", "-f", "php-fpm: pool www")

        run(sandbox, *service.start)
        wait_until(lambda: sandbox.run(pool, timeout_s=5).returncode == 0)
        run(sandbox, *service.stop)
        run(sandbox, *service.stop)

        wait_until(lambda: sandbox.run(pool, timeout_s=5).returncode == 1)
