"""Where a server's program is found."""

import pytest

from tuner.errors import TargetError, Unreachable
from tuner.kit.programs import find_program
from tuner.plugins import make_server
from tuner.ports import Argv, Completed
from tuner.testing.fakes import MemoryHost, completed

NAMES = ("nginx", "/usr/sbin/nginx")
RUNNING = b"""\
17 nginx: master process /opt/web/nginx -c /srv/nginx.conf
18 /bin/sh /srv/watch /opt/other/nginx
19 nginx: master process /opt/more/nginx
"""


VERSIONS = b"""\
nginx version: nginx/1.22.1
Server version: Apache/2.4.62
PHP 8.2.1
h2o version 2.2.6
HAProxy version 2.6.12
v2.6.2
"""


def say_version(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
    return completed(argv, stderr=b"nginx version: nginx/1.28.0\n")


def list_running(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
    # A program of another user is not run as root, nor one of a container.
    assert "pgrep --ns $$ --nslist pid,mnt -U 0" in argv[2]
    return completed(argv, stdout=RUNNING)


def test_a_program_that_is_nowhere_is_the_one_that_root_runs():
    host = MemoryHost(commands={"sh": list_running, "/opt/web/nginx": say_version})

    assert find_program(host, NAMES, "-V", package="nginx")[0] == "/opt/web/nginx"


def test_a_program_in_its_place_comes_first():
    host = MemoryHost(commands={"sh": list_running, "/opt/web/nginx": say_version, NAMES[1]: say_version})

    assert find_program(host, NAMES, "-V", package="nginx")[0] == NAMES[1]


def test_a_program_that_is_nowhere_and_does_not_run_is_to_be_installed():
    said = (
        r"^memory: there is no program 'nginx' that may be run. tuner runs this program "
        r"as root only from /usr/sbin/nginx. Install the program with: apt-get install nginx$"
    )
    with pytest.raises(TargetError, match=said):
        find_program(MemoryHost(), NAMES, "-V", package="nginx")


def test_a_program_that_the_study_names_is_the_only_one():
    host = MemoryHost(commands={"/opt/own/nginx": say_version, "nginx": say_version})

    assert find_program(host, NAMES, "-V", package="nginx", named="/opt/own/nginx")[0] == "/opt/own/nginx"
    with pytest.raises(
        TargetError, match=r"tuner cannot run the program /opt/lost.* Correct `program:`"
    ) as refused:
        find_program(host, NAMES, "-V", package="nginx", named="/opt/lost")
    assert "nstall" not in str(refused.value)


@pytest.mark.parametrize("name", ["nginx", "apache", "php-fpm", "h2o", "haproxy", "caddy"])
def test_every_server_takes_the_program_that_the_study_names(name: str):
    asked: list[str] = []

    def answer(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        asked.append(argv[0])
        return completed(argv, stdout=VERSIONS)

    host = MemoryHost(commands={"/opt/own": answer, "ls": answer})

    facts = make_server(name, program="/opt/own").detect(host)

    assert (str(facts.program), asked[0]) == ("/opt/own", "/opt/own")


def test_a_host_that_cannot_be_asked_is_not_told_to_install_what_it_may_have():
    def be_cut_off(*_given: object) -> Completed:
        raise Unreachable("memory: there is no host of that name.")

    with pytest.raises(Unreachable, match=r"^memory: there is no host of that name\.$"):
        find_program(MemoryHost(commands={"nginx": be_cut_off}), NAMES, "-V", package="nginx")
