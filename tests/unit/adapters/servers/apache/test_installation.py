"""What the adapter reads out of an installed Apache's files, and what it writes."""

import re
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from tests.unit.adapters.servers.apache.layouts import (
    ALPINE,
    DEBIAN,
    LAYOUTS,
    MPM_EVENT,
    RHEL,
    Layout,
    find,
    host_of,
    with_file,
)
from tuner.adapters.servers.apache import Apache
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import Config

MAIN = "/etc/apache2/apache2.conf"
DROP_IN = PurePosixPath("/etc/apache2/conf-enabled/zz-tuner.conf")
SITE = "/etc/apache2/sites-enabled/000-default.conf"
SECURITY = "/etc/apache2/conf-enabled/security.conf"
YES, NO, END = "<IfModule status_module>", "<IfModule ssl_module>", "</IfModule>"
NESTED_MACROS = """\
<Macro In %x>
Timeout %x
</Macro>
<Macro Out %x @{y}>
<IfModule @{y}>
Use In %x
</IfModule>
</Macro>
Use Out '36' event.c
Use Out 1 worker.c
"""
SIZES = (
    "ThreadsPerChild",
    "MaxRequestWorkers",
    "Processes",
    "StartServers",
    "MinSpareThreads",
    "MaxSpareThreads",
)


def current(layout: Layout) -> Config:
    return find(layout).facts.current


def reading(text: str, *, version: str = "2.4.71") -> Config:
    """Say what is active with these lines added on Debian."""
    return current(replace(with_file(DEBIAN, SECURITY, text), version=version))


def written(config: Config, layout: Layout = DEBIAN) -> str:
    """Give the drop-in's lines without its head."""
    (content,) = Apache().rewrite(config, find(layout)).values()
    return "\n".join(line for line in content.decode().splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_service_is_found_as_the_distribution_installs_it(name: str):
    found = find(LAYOUTS[name])
    expected = "httpd" if name == "rhel-9" else "apache2"

    assert found.service.name == expected
    assert found.service.stop == ("systemctl", "stop", expected)
    assert found.service.start == ("systemctl", "start", expected)
    assert found.service.reload == ("systemctl", "reload", expected)
    assert found.service.check == (LAYOUTS[name].control, "-t")
    assert found.service.pid_file == PurePosixPath(LAYOUTS[name].pid_file)
    assert found.log == PurePosixPath(LAYOUTS[name].log)
    assert found.port == 80
    assert found.facts.cores == 4
    assert ".".join(map(str, found.facts.version)) == LAYOUTS[name].version


def test_debians_sizes_are_those_it_ships():
    assert [current(DEBIAN)[name] for name in SIZES] == [25, 150, 6, 2, 25, 75]
    assert current(DEBIAN)["Timeout"] == 300


def test_what_red_hat_writes_no_line_for_is_the_programs_own_default():
    assert [current(RHEL)[name] for name in SIZES] == [25, 400, 16, 3, 75, 250]
    assert current(RHEL)["Timeout"] == 60
    assert current(RHEL)["EnableSendfile"] is True


def test_an_init_script_starts_it_where_there_is_no_systemd():
    found = find(
        replace(DEBIAN, is_systemd=False, others={**DEBIAN.others, "/etc/init.d/apache2": "#!/bin/sh\n"})
    )

    assert found.service.stop == ("service", "apache2", "stop")
    assert not found.service.is_systemd


def test_openrcs_script_of_alpine_is_the_service_of_its_httpd():
    service = find(ALPINE).service

    assert (service.name, service.check[0]) == ("apache2", "/usr/sbin/httpd")
    assert (service.stop, service.start[-2:]) == (
        ("service", "apache2", "stop"),
        ("/etc/init.d/apache2", "start"),
    )


def test_the_program_itself_is_asked_where_nobody_manages_it():
    found = find(replace(RHEL, is_systemd=False))

    assert found.service.start[-3:] == ("/usr/sbin/httpd", "-k", "start")
    assert found.service.stop[-2:] == ("/run/httpd/httpd.pid", "httpd")
    assert found.service.reload == ("/usr/sbin/httpd", "-k", "graceful")


def test_the_arguments_that_red_hat_starts_it_with_decide_conditions_and_go_with_every_check():
    layout = replace(RHEL, others={"/etc/sysconfig/httpd": 'OPTIONS="-D BIG -DQUICK"\n'})
    layout = with_file(
        layout,
        "/etc/httpd/conf.d/size.conf",
        "<IfDefine BIG>\nThreadsPerChild 50\n</IfDefine>\n<IfDefine QUICK>\nTimeout 7\n</IfDefine>\n",
    )

    found = find(layout)

    assert (found.facts.current["ThreadsPerChild"], found.facts.current["Timeout"]) == (50, 7)
    assert found.service.check == ("/usr/sbin/httpd", "-D", "BIG", "-DQUICK", "-t")


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("timeout 77\n", "Timeout", 77),
        ("TIMEOUT\t78", "Timeout", 78),
        ("Timeout 1\nTimeout 79\n", "Timeout", 79),
        ("Timeout 80\r\nKeepAlive Off\r\n", "Timeout", 80),
        ("Timeout 81\r\nKeepAlive Off\r\n", "KeepAlive", False),
        ("Timeout \\\n  82\n", "Timeout", 82),
        ("Timeout \\\r\n  83\r\n", "Timeout", 83),
        ("# a comment goes on \\\nTimeout 84\n", "Timeout", 300),
        ('Timeout "85"\n', "Timeout", 85),
        ("Timeout '86'\n", "Timeout", 86),
        ("   # Timeout 87\n", "Timeout", 300),
        ("Timeout 88k\n", "Timeout", 88),
        ("Define SHORT 9\nTimeout ${SHORT}\n", "Timeout", 9),
        ("Define SHORT 9\nUnDefine SHORT\n<IfDefine SHORT>\nTimeout 1\n</IfDefine>\n", "Timeout", 300),
        ("<IfModule mod_status.c>\nTimeout 10\n</IfModule>\n", "Timeout", 10),
        ("<IfModule status_module>\nTimeout 11\n</IfModule>\n", "Timeout", 11),
        ("<IfModule !status_module>\nTimeout 12\n</IfModule>\n", "Timeout", 300),
        ("<IFMODULE event.c>\nTimeout 13\n</ifmodule>\n", "Timeout", 13),
        *((f"<IfModule {name}>\nTimeout 13\n</IfModule>\n", "Timeout", 300) for name in (
            "mpm_event.c", "mod_mpm_event.c", "mod_event.c", "mod_status", "status", "status.c",
            "Status_module", "mod_core.c", "mod_http.c", '"!mod_ssl.c"',
        )),
        *((f"<IfModule {name}>\nTimeout 13\n</IfModule>\n", "Timeout", 13) for name in (
            "mpm_event_module", '"mod_status.c"', "mod_status.c ", "! mod_ssl.c", "!status", "core.c",
            "core_module", "http_module", "mod_qos.c",
        )),
        (f"{NO}\nTimeout 1\n{END}\nLoadModule ssl_module x.so\n", "Timeout", 300),
        (f"LoadModule ssl_module x.so\n{NO}\nTimeout 2\n{END}\n", "Timeout", 2),
        ("<IfFile /etc/apache2/ports.conf>\nTimeout 22\n</IfFile>\n", "Timeout", 22),
        ("<IfFile 'ports.conf'>\nTimeout 23\n</IfFile>\n", "Timeout", 23),
        ("<IfFile !ports.conf>\nTimeout 24\n</IfFile>\n", "Timeout", 300),
        ("<IfFile ports.conf>\n<IfFile !none>\nTimeout 25\n</IfFile>\n</IfFile>\n", "Timeout", 25),
        ("ServerRoot /etc\n<IfFile apache2/ports.conf>\nTimeout 26\n</IfFile>\n", "Timeout", 26),
        ("<IfDirective keepalive>\nTimeout 27\n</IfDirective>\n", "Timeout", 27),
        ("<IfDirective !KeepAlive>\nTimeout 28\n</IfDirective>\n", "Timeout", 300),
        ("<IfDirective <Directory>\nTimeout 29\n</IfDirective>\n", "Timeout", 29),
        ("<IfDirective Directory>\nTimeout 30\n</IfDirective>\n", "Timeout", 300),
        ("<IfSection directory>\nTimeout 31\n</IfSection>\n", "Timeout", 31),
        ("<IfSection !Proxy>\nTimeout 32\n</IfSection>\n", "Timeout", 32),
        ("<Macro Short $x>\nTimeout $x\n</Macro>\nUse short 33\n", "Timeout", 33),
        ("<Macro Short>\nTimeout 34\n</Macro>\n", "Timeout", 300),
        ("<Macro S $t $time>\nTimeout $time$t\n</Macro>\nUse S 5 3\nUndefMacro S\nUse S 9\n", "Timeout", 35),
        (NESTED_MACROS, "Timeout", 36),
        ("Define T 1\n<Macro Late>\nTimeout ${T}\n</Macro>\nDefine T 37\nUse Late\n", "Timeout", 37),
        ("<IfModule ssl_module>\n<Macro M>\nTimeout 1\n</Macro>\nUse M\n</IfModule>\n", "Timeout", 300),
        ("Define APACHE_LOG_DIR 38\nTimeout ${APACHE_LOG_DIR}\n", "Timeout", 38),
        ("<IfModule prefork.c>\nTimeout 14\n</IfModule>\n", "Timeout", 300),
        ("<IfModule http_core.c>\nTimeout 15\n</IfModule>\n", "Timeout", 15),
        (f"{NO}\n{YES}\nTimeout 1\n{END}\nTimeout 2\n{END}\n", "Timeout", 300),
        (f"{YES}\n{NO}\nTimeout 1\n{END}\nTimeout 16\n{END}\n", "Timeout", 16),
        ("<IfVersion >= 2.4>\nTimeout 17\n</IfVersion>\n", "Timeout", 17),
        ("<IfVersion < 2.4.70>\nTimeout 18\n</IfVersion>\n", "Timeout", 300),
        ("<IfVersion 2.4.71>\nTimeout 19\n</IfVersion>\n", "Timeout", 19),
        ("<IfVersion !~ ^2\\.4>\nTimeout 20\n</IfVersion>\n", "Timeout", 300),
        ("<IfVersion = /^2.4.7[01]$/>\nTimeout 21\n</IfVersion>\n", "Timeout", 21),
        ("KeepAliveTimeout 3000ms\n", "KeepAliveTimeout", 3),
        ("KeepAliveTimeout 1min\n", "KeepAliveTimeout", 60),
        ("MaxClients 50\n", "MaxRequestWorkers", 50),
        ("MaxRequestsPerChild 1000\n", "MaxConnectionsPerChild", 1000),
        ("AcceptFilter https none\n", "AcceptFilter", "data"),
        ("AcceptFilter http none\n", "AcceptFilter", "none"),
        ("AsyncRequestWorkerFactor 1.5\n", "AsyncRequestWorkerFactor", 1),
        ("RequestReadTimeout header=0\n", "RequestReadTimeout", True),
        ("RequestReadTimeout header=0 body=0\n", "RequestReadTimeout", False),
        ("H2MaxWorkers 40\n", "H2MaxWorkers", 40),
        # The event MPM's own arithmetic.
        ("MaxRequestWorkers 155\n", "MaxRequestWorkers", 150),
        ("MaxRequestWorkers 10\n", "MaxRequestWorkers", 25),
        ("ServerLimit 4\n", "MaxRequestWorkers", 100),
        ("ThreadsPerChild 100\n", "ThreadsPerChild", 64),
        ("MaxSpareThreads 30\n", "MaxSpareThreads", 51),
        ("StartServers 50\n", "StartServers", 6),
        ("ListenCoresBucketsRatio 2\n", "ListenCoresBucketsRatio", 2),
        ("ListenCoresBucketsRatio 3\n", "ListenCoresBucketsRatio", 0),
    ],
)  # fmt: skip
def test_the_files_are_read_as_the_program_reads_them(text: str, name: str, value: object):
    assert reading(text)[name] == value


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<VirtualHost *:80>\nKeepAliveTimeout 1\n</VirtualHost>\n", "KeepAliveTimeout"),
        (
            "<Directory /srv>\n<IfModule status_module>\nEnableMMAP Off\n</IfModule>\n</Directory>\n",
            "EnableMMAP",
        ),
        ("<If true>\nTimeout 1\n</If>\n", "Timeout"),
        ("<Macro M>\nTimeout 1\n</Macro>\n<VirtualHost *>\nUse M\n</VirtualHost>\n", "Timeout"),
        ("<Macro M>\n<VirtualHost *>\nTimeout 1\n</VirtualHost>\n</Macro>\nUse M\n", "Timeout"),
        ("KeepAliveTimeout 1500ms\n", "KeepAliveTimeout"),
        ("LimitRequestBody 1000\n", "LimitRequestBody"),
    ],
)
def test_what_no_drop_in_can_change_is_not_offered(text: str, name: str):
    assert name not in reading(text)
    with pytest.raises(ConfigRejected, match=rf"^apache: '{name}' cannot be changed on this host: "):
        Apache().rewrite({name: 1}, find(with_file(DEBIAN, SECURITY, text)))


def test_settings_of_modules_that_are_not_loaded_are_not_offered():
    assert current(RHEL).keys().isdisjoint({"RequestReadTimeout"})
    with pytest.raises(ConfigRejected, match="the module reqtimeout is not loaded"):
        Apache().rewrite({"RequestReadTimeout": False}, find(RHEL))


def test_the_log_of_each_site_is_not_offered():
    found = find(DEBIAN)

    assert "000-default.conf:3 sets this for a part of the server" in found.facts.withheld["CustomLog"]
    with pytest.raises(ConfigRejected, match=r"000-default\.conf:3 sets this for a part of the server"):
        Apache().rewrite({"CustomLog": "off"}, found)


def test_files_are_included_by_pattern_in_the_order_of_their_names_and_by_directory():
    layout = with_file(
        DEBIAN, MAIN, DEBIAN.files[MAIN] + "Include /etc/more/[ab]*/*.cfg\nInclude /etc/whole\n"
    )
    layout = with_file(layout, "/etc/more/b/1.cfg", "Timeout 2\n")
    layout = with_file(layout, "/etc/more/a/2.cfg", "Timeout 1\nKeepAlive Off\n")
    layout = with_file(layout, "/etc/whole/deep/er", "MaxKeepAliveRequests 7\n")

    found = current(layout)

    assert (found["Timeout"], found["KeepAlive"], found["MaxKeepAliveRequests"]) == (2, False, 7)


def test_a_port_for_https_is_the_last_choice():
    text = "Listen 127.0.0.1:8443 https\nListen [::]:8080\n"

    assert find(with_file(DEBIAN, "/etc/apache2/ports.conf", text)).port == 8080


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            f"AH00526: Syntax error on line 1 of {SECURITY}:\nInvalid command 'Foo'\nAction '-t' failed.\n",
            f"Syntax error on line 1 of {SECURITY}: Invalid command 'Foo'",
        ),
        (
            f"apache2: Syntax error on line 8 of {MAIN}: Cannot load mod_x.so\nAction '-t' failed.\n",
            f"Syntax error on line 8 of {MAIN}: Cannot load mod_x.so",
        ),
        ("AH00543: apache2: bad user name foo\n", "AH00543: apache2: bad user name foo"),
    ],
)
def test_a_configuration_that_the_program_refuses_is_shown_with_file_and_line(said: str, shown: str):
    host = host_of(DEBIAN)
    control = host.commands[DEBIAN.control]

    def broken(memory, argv, stdin):
        ended = control(memory, argv, stdin)
        return ended if "-V" in argv else replace(ended, returncode=1, stderr=said.encode())

    host.commands[DEBIAN.control] = broken

    with pytest.raises(TargetError, match=re.escape(f"the installed configuration: {shown}") + "$"):
        Apache().find(host)


def test_a_tree_without_a_place_for_a_drop_in_is_refused_with_the_line_to_add():
    text = DEBIAN.files[MAIN].replace("IncludeOptional conf-enabled/*.conf\n", "")

    with pytest.raises(
        TargetError,
        match=r"Add a line at the end of this file: IncludeOptional /etc/apache2/conf-enabled/\*\.conf",
    ):
        find(with_file(DEBIAN, MAIN, text))


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_present_configuration_changes_nothing(name: str):
    found = find(LAYOUTS[name])
    present = {key: value for key, value in found.facts.current.items() if key != "Processes"}

    assert Apache().rewrite(present, found) == {}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_drop_in_is_where_the_distribution_reads_it(name: str):
    (path,) = Apache().rewrite({"Timeout": 11}, find(LAYOUTS[name]))

    assert str(path) == ("/etc/httpd/conf.d/zz-tuner.conf" if name == "rhel-9" else str(DROP_IN))


def test_only_what_differs_is_written():
    asked = {"Timeout": 300, "KeepAliveTimeout": 2, "EnableSendfile": True, "AcceptFilter": "none"}

    assert written(asked) == "AcceptFilter http none\nEnableSendfile On\nKeepAliveTimeout 2"


def test_sizes_come_with_their_limits_first():
    asked = {"ThreadsPerChild": 100, "MaxRequestWorkers": 2000, "StartServers": 2, "MinSpareThreads": 25,
             "MaxSpareThreads": 300, "ServerLimit": 25, "ThreadLimit": 100}  # fmt: skip

    assert written(asked).splitlines() == [
        "ServerLimit 25", "ThreadLimit 100", "MaxRequestWorkers 2000", "MaxSpareThreads 300",
        "ThreadsPerChild 100",
    ]  # fmt: skip


def test_limits_stay_as_they_are_while_the_sizes_do():
    layout = with_file(DEBIAN, SECURITY, "ServerLimit 500\nThreadLimit 200\n")
    asked = {
        "ThreadsPerChild": 25,
        "MaxRequestWorkers": 150,
        "ServerLimit": 16,
        "ThreadLimit": 64,
        "Timeout": 9,
    }

    assert written(asked, layout) == "Timeout 9"


def test_a_size_that_the_mpm_had_raised_is_written_when_another_changes():
    layout = with_file(DEBIAN, SECURITY, "MaxSpareThreads 30\n")
    present = {name: current(layout)[name] for name in SIZES if name != "Processes"}

    assert "MaxSpareThreads 51" in written({**present, "StartServers": 1}, layout)


def test_listeners_by_core_are_switched_off_by_a_ratio_of_all_cores():
    layout = with_file(DEBIAN, SECURITY, "ListenCoresBucketsRatio 2\n")

    assert written({"ListenCoresBucketsRatio": 0}, layout) == "ListenCoresBucketsRatio 4"


def test_limits_for_slow_requests_are_switched_off_and_on():
    off = with_file(DEBIAN, SECURITY, "RequestReadTimeout header=0 body=0\n")

    assert written({"RequestReadTimeout": False}) == "RequestReadTimeout header=0 body=0"
    assert written({"RequestReadTimeout": True}, off) == (
        "RequestReadTimeout header=20-40,minrate=500 body=10,minrate=500"
    )


@pytest.mark.parametrize("place", [SITE, "/etc/apache2/conf-enabled/zzz.conf"])
def test_a_line_that_would_win_is_named(place: str):
    layout = with_file(DEBIAN, place, "# mine\nTimeout 5\n")

    with pytest.raises(
        TargetError, match=rf"{place}:2 sets Timeout after {DROP_IN}, and so overrides the value there"
    ):
        Apache().rewrite({"Timeout": 9}, find(layout))


def test_a_drop_in_that_is_there_keeps_its_other_lines():
    layout = with_file(DEBIAN, str(DROP_IN), "# mine\nTimeout 5\nKeepAliveTimeout 1\n")

    (content,) = Apache().rewrite({"Timeout": 9, "KeepAliveTimeout": 1}, find(layout)).values()

    assert content.decode() == "# mine\nKeepAliveTimeout 1\nTimeout 9\n"


def test_sizes_that_the_mpm_would_change_are_rejected():
    with pytest.raises(ConfigRejected, match="the event MPM changes MaxSpareThreads 40 to 51"):
        Apache().rewrite({"MaxSpareThreads": 40}, find(DEBIAN))


def test_the_files_of_the_installation_are_not_changed_by_reading_them():
    found = find(DEBIAN)
    before = dict(found.files)

    Apache().rewrite({"Timeout": 9}, found)

    assert dict(found.files) == before
    assert found.files[PurePosixPath("/etc/apache2/mods-enabled/mpm_event.conf")] == MPM_EVENT.encode()
