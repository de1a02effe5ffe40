"""What the adapter reads out of an installed php-fpm, and what it writes."""

from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.adapters.servers.php_fpm.layouts import (
    BOOKWORM,
    DOCKER,
    LAYOUTS,
    RHEL,
    SHOP_AND_BLOG,
    Layout,
    find_pool,
    host_of,
    with_file,
    with_pool,
)
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.servers.php_fpm import PhpFpm
from tuner.adapters.servers.php_fpm.builds import DIRECTORIES
from tuner.adapters.servers.php_fpm.installation import FIND_PROGRAMS
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import Config
from tuner.testing.fakes import completed

MAIN = "/etc/php/8.2/fpm/php-fpm.conf"
POOLS = "/etc/php/8.2/fpm/pool.d"
DROP_IN = PurePosixPath(f"{POOLS}/zz-tuner.conf")
SPARE = ("pm.start_servers", "pm.min_spare_servers", "pm.max_spare_servers")


def written(config: Config, layout: Layout = BOOKWORM) -> str:
    (content,) = PhpFpm().rewrite(config, find_pool(layout)).values()
    return content.decode()


@pytest.mark.parametrize(
    ("layout", "service", "program", "pid_file", "log"),
    [
        (
            BOOKWORM,
            "php8.2-fpm",
            "/usr/sbin/php-fpm8.2",
            "/run/php/php8.2-fpm.pid",
            "/var/log/php8.2-fpm.log",
        ),
        (RHEL, "php-fpm", "/usr/sbin/php-fpm", "/run/php-fpm/php-fpm.pid", "/var/log/php-fpm/error.log"),
    ],
    ids=LAYOUTS,
)
def test_the_service_is_found_as_the_distribution_installs_it(layout, service, program, pid_file, log):
    found = find_pool(layout)

    assert found.service.name == service
    assert found.service.check == (program, "-t", "--nodaemonize", "--force-stderr")
    assert found.service.stop == ("systemctl", "stop", service)
    assert found.service.pid_file == PurePosixPath(pid_file)
    assert found.log == PurePosixPath(log)
    assert found.port is None
    assert list(found.files) == [PurePosixPath(path) for path in layout.files]
    assert ".".join(map(str, found.facts.version)) == layout.version


def test_what_the_program_says_is_in_force_is_taken_in_its_kind():
    current = find_pool(BOOKWORM).facts.current

    assert (current["pm"], current["pm.max_children"], current["request_terminate_timeout"]) == (
        "dynamic",
        5,
        0,
    )
    assert (current["pool.listen.backlog"], current["catch_workers_output"]) == (-1, False)
    assert current.keys().isdisjoint({"user", "listen.mode", "process.priority"})


def test_what_protects_the_application_is_not_offered():
    assert (
        find_pool(BOOKWORM).facts.current.keys().isdisjoint({"clear_env", "process.dumpable", "rlimit_core"})
    )
    with pytest.raises(ConfigRejected):
        PhpFpm().rewrite({"clear_env": False}, find_pool(BOOKWORM))


def test_what_an_old_version_does_not_know_is_not_offered():
    assert "pm.max_spawn_rate" not in find_pool(RHEL).facts.current


@pytest.mark.parametrize("kind", ["static", "ondemand"])
def test_a_pool_that_reads_no_spare_processes_starts_from_possible_ones(kind: str):
    layout = with_pool(
        BOOKWORM, pm=kind, pm__max_children="9", pm__start_servers="0", pm__min_spare_servers="0",
        pm__max_spare_servers="0",
    )  # fmt: skip
    current = find_pool(layout).facts.current

    assert [current[name] for name in SPARE] == [5, 1, 9]
    # They stand nowhere, so that the pool needs them written as soon as it reads them.
    asked = {"pm": "dynamic", **{name: current[name] for name in SPARE}}
    assert written(asked, layout).splitlines()[1:] == [
        "[www]",
        "pm = dynamic",
        "pm.start_servers = 5",
        "pm.min_spare_servers = 1",
        "pm.max_spare_servers = 9",
    ]


def test_of_several_versions_the_newest_is_taken():
    programs = ("/usr/sbin/php-fpm7.4", "/usr/sbin/php-fpm8.10", "/usr/sbin/php-fpm8.2")

    assert find_pool(replace(BOOKWORM, programs=programs)).service.name == "php8.10-fpm"


def test_a_program_is_found_where_other_distributions_have_it():
    assert find_pool(replace(BOOKWORM, programs=("/usr/sbin/php-fpm82",))).service.name == "php-fpm82"
    assert find_pool(replace(BOOKWORM, programs=("/usr/bin/php-fpm",))).service.name == "php-fpm"


def test_programs_are_found_where_their_folder_is_a_link(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/php-fpm8.4").touch()
    (tmp_path / "sbin").symlink_to("bin")
    find = [str(tmp_path / "sbin") if word == DIRECTORIES[0] else word for word in FIND_PROGRAMS]

    listed = LocalHost().run(find, timeout_s=5)

    assert f"{tmp_path}/sbin/php-fpm8.4\n" in listed.stdout.decode()


def test_a_host_without_php_fpm_is_answered_with_the_package():
    with pytest.raises(TargetError, match="apt-get install php-fpm"):
        find_pool(replace(BOOKWORM, programs=()))


def test_the_program_itself_is_started_where_nobody_manages_it():
    service = find_pool(replace(BOOKWORM, is_systemd=False)).service

    assert service.start[-2:] == ("/usr/sbin/php-fpm8.2", "--daemonize")
    assert service.stop[-2:] == ("/run/php/php8.2-fpm.pid", "php-fpm: master process")
    assert service.reload is None


def test_an_init_script_starts_it_where_there_is_no_systemd():
    layout = replace(BOOKWORM, is_systemd=False, others={"/etc/init.d/php8.2-fpm": "#!/bin/sh\n"})

    assert find_pool(layout).service.reload == ("service", "php8.2-fpm", "reload")


def test_several_pools_of_which_none_has_the_usual_name_are_refused():
    with pytest.raises(
        TargetError, match="the pools shop, blog, wiki, and tuner does not know which pool the load"
    ):
        PhpFpm().rewrite({"pm.max_children": 2}, find_pool(SHOP_AND_BLOG))


@pytest.mark.parametrize(
    ("address", "pool"),
    [
        ("127.0.0.1:9000", "shop"),
        ("localhost:9000", "shop"),
        ("unix:/run/php/blog.sock", "blog"),
        ("unix:/var/run/php/blog.sock", "blog"),
        ("127.0.0.1:9001", "wiki"),
        ("[::1]:9001", "wiki"),
        ("192.0.2.1:9001", "wiki"),
        ("php:9000", "shop"),
    ],
)
def test_the_pool_that_the_load_leads_to_is_tuned(address: str, pool: str):
    found = PhpFpm().find_behind(host_of(SHOP_AND_BLOG), (address,))
    (content,) = PhpFpm().rewrite({"pm.max_children": 2}, found).values()

    assert found.facts.current["pm.max_children"] == {"shop": 7, "blog": 8, "wiki": 9}[pool]
    assert content.decode().splitlines()[1:] == [f"[{pool}]", "pm.max_children = 2"]


@pytest.mark.parametrize("address", ["127.0.0.1:9002", "192.0.2.1:9000", "unix:/run/php/other.sock"])
def test_an_address_at_which_no_pool_listens_is_named(address: str):
    with pytest.raises(
        TargetError, match=rf"leads to {address}, and no pool .* shop at 127\.0\.0\.1:9000, blog"
    ):
        PhpFpm().find_behind(host_of(SHOP_AND_BLOG), (address,))


def test_files_are_included_as_the_program_includes_them():
    found = find_pool(DOCKER)
    files = PhpFpm().rewrite({"pm.max_children": 2}, found)

    assert list(map(str, found.files)) == list(DOCKER.files)
    assert list(map(str, files)) == ["/usr/local/etc/php-fpm.d/zz-tuner.conf"]


def test_a_drop_in_ends_as_the_files_that_are_included():
    main = f"[global]\ninclude={POOLS}/*.conf\ninclude=/srv/pools/*.pool\ninclude=/srv/*/one.conf\n"
    layout = with_file(with_file(BOOKWORM, MAIN, main), "/srv/pools/a.pool", "[www]\npm = static\n")

    assert list(map(str, PhpFpm().rewrite({"pm.max_children": 2}, find_pool(layout)))) == [
        "/srv/pools/zz-tuner.pool"
    ]


def test_lines_after_an_include_belong_to_the_pool_that_was_opened_last():
    main = f"[global]\ninclude={POOLS}/*.conf\npm.max_children = 3\n"
    layout = with_file(BOOKWORM, MAIN, main)

    with pytest.raises(TargetError, match=rf"{MAIN}:3 sets pm\.max_children after {DROP_IN}, and so"):
        PhpFpm().rewrite({"pm.max_children": 9}, find_pool(layout))


def test_a_configuration_that_the_program_refuses_is_shown_with_its_words():
    host = host_of(BOOKWORM)
    host.commands["/usr/sbin/php-fpm8.2"] = lambda _host, argv, _stdin: completed(
        argv,
        returncode=0 if "-v" in argv else 78,
        stderr=b"ERROR: [/etc/www.conf:3] unknown entry 'foo'\n"
        b"ERROR: failed to load configuration file '/etc/php-fpm.conf'\nERROR: FPM initialization failed\n",
    )

    with pytest.raises(
        TargetError,
        match=r"refuses the installed configuration: ERROR: \[/etc/www.conf:3\] unknown entry 'foo'$",
    ):
        PhpFpm().find(host)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_present_configuration_changes_nothing(layout: Layout):
    found = find_pool(layout)

    assert PhpFpm().rewrite(found.facts.current, found) == {}


def test_only_what_differs_is_written_where_the_distribution_reads_it():
    files = PhpFpm().rewrite(
        {"pm": "dynamic", "pm.max_children": 9, "pool.listen.backlog": 300}, find_pool(BOOKWORM)
    )

    assert files.keys() == {DROP_IN}
    assert files[DROP_IN].decode().splitlines()[1:] == [
        "[www]",
        "pm.max_children = 9",
        "listen.backlog = 300",
    ]
    assert PhpFpm().rewrite({"pm.max_children": 9}, find_pool(RHEL)).keys() == {
        PurePosixPath("/etc/php-fpm.d/zz-tuner.conf")
    }


def test_a_line_that_would_win_is_named():
    layout = with_file(BOOKWORM, f"{POOLS}/zzz.conf", "[www]\npm.max_children = 7\n")

    with pytest.raises(
        TargetError, match=rf"{POOLS}/zzz\.conf:2 sets pm\.max_children after {DROP_IN}, and so"
    ):
        PhpFpm().rewrite({"pm.max_children": 9}, find_pool(layout))


def test_another_pool_after_it_wins_nothing():
    layout = with_file(BOOKWORM, f"{POOLS}/zzz.conf", "[shop]\npm.max_children = 7\n")

    assert "pm.max_children = 9" in written({"pm.max_children": 9}, layout)


def test_a_drop_in_that_is_there_keeps_its_other_lines():
    layout = with_file(BOOKWORM, str(DROP_IN), "; mine\n[www]\npm.max_children = 6\npm.max_requests = 10\n")

    assert written({"pm.max_children": 9}, layout) == (
        "; mine\n[www]\npm.max_requests = 10\n[www]\npm.max_children = 9\n"
    )


def test_files_without_a_directory_of_pools_are_refused_with_the_line_to_add():
    one = with_file(BOOKWORM, MAIN, "[global]\ninclude=/etc/php/8.2/fpm/pool.d/www.conf\n")

    with pytest.raises(
        TargetError, match=r"Add a line at the end of this file: include=/etc/php/8\.2/fpm/pool\.d/\*\.conf"
    ):
        PhpFpm().rewrite({"pm.max_children": 9}, find_pool(one))


def test_a_pool_whose_name_cannot_be_written_again_is_refused():
    layout = with_file(BOOKWORM, f"{POOLS}/www.conf", "[a b]\npm = dynamic\n")
    layout = replace(layout, dumped={"global": layout.dumped["global"], "a b": layout.dumped["www"]})

    with pytest.raises(TargetError, match="tuner cannot write the pool name 'a b'"):
        PhpFpm().rewrite({"pm.max_children": 9}, find_pool(layout))


def test_what_its_check_warns_of_is_a_refusal():
    printed = (
        b"[21-Nov-2026 15:38:09] WARNING: [pool www] listen.backlog(5) was too low\n"
        b"[21-Nov-2026 15:38:09] NOTICE: configuration file x test is successful\n"
    )

    assert PhpFpm().refusals(completed(stderr=printed)) == (
        "WARNING: [pool www] listen.backlog(5) was too low",
    )


def test_its_log_explains_a_failure():
    log = (
        b"[21-Nov-2026 15:38:09] NOTICE: ready to handle connections\n"
        b"[21-Nov-2026 15:38:10] WARNING: [pool www] server reached pm.max_children setting (5), "
        b"consider raising it\n"
        b"[21-Nov-2026 15:38:11] WARNING: [pool www] child 12 exited on signal 11 (SIGSEGV) "
        b"after 1.0 seconds\n"
    )

    assert PhpFpm().complaints(log) == (
        "WARNING: [pool www] server reached pm.max_children setting (5), consider raising it",
        "WARNING: [pool www] child 12 exited on signal 11 (SIGSEGV) after 1.0 seconds",
    )


def test_a_program_in_no_usual_place_is_the_one_that_root_runs():
    program = "/opt/php/sbin/php-fpm"
    host = host_of(replace(RHEL, programs=(program,)))
    host.commands["find"] = lambda _host, argv, _stdin: completed(argv)
    host.commands["sh"] = lambda _host, argv, _stdin: completed(argv, stdout=b"7\n")
    host.commands["readlink"] = lambda _host, argv, _stdin: completed(argv, stdout=f"{program}\n".encode())

    assert str(PhpFpm().detect(host).program) == program
