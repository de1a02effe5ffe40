"""Each rule finds the lines that servers and the kernel write, in the form in which they write them."""

import re

import pytest

from tuner.advice.log_lines import LogLine, cut_messages
from tuner.advice.rule_file import RuleFile
from tuner.advice.rules import FOLDER, read_file

APACHE = "[Thu Nov 26 18:45:56.123456 2026] [mpm_event:error] [pid 9:tid 10] "
AGAIN = "(11)Resource temporarily unavailable"
NGINX = "2026/11/26 18:45:56 [error] 8#8: "
REQUEST = ', client: 192.0.2.7, server: _, request: "GET / HTTP/1.1", host: "web"'
PHP = "[26-Nov-2026 18:45:56] WARNING: [pool www] "
HAPROXY = "Nov 26 18:45:56 web haproxy[12]: "
ASKED = "192.0.2.7:51234 [26/Nov/2026:18:45:51.123] web app"
KERNEL = "2026-11-26T18:45:56,123456+00:00 "
CADDY = '{"level":"error","ts":1795712756.1,"logger":"http.log.error","msg":'
REACHED = "server reached MaxRequestWorkers setting, consider raising it"
NEARLY = "server is within MinSpareThreads of MaxRequestWorkers, consider raising it"
BUSY = "server seems busy, (you may need to increase StartServers), spawning 8 children"
MESSAGES = {
    "apache.memory_of_workers": [f"{APACHE}AH00052: child pid 812 exit signal Killed (9)"],
    "apache.max_request_workers": [
        *(f"{APACHE}{number}: {REACHED}" for number in ("AH00161", "AH00286", "AH00484")),
        *(f"{APACHE}{number}: {NEARLY}" for number in ("AH10159", "AH00287")),
    ],
    "apache.scoreboard": [
        f"{APACHE}AH00288: scoreboard is full, not at MaxRequestWorkers",
        f"{APACHE}AH03490: scoreboard is full, not at MaxRequestWorkers.Increase ServerLimit.",
    ],
    "apache.spare_workers": [f"{APACHE}{number}: {BUSY}" for number in ("AH00162", "AH00486")],
    "apache.no_more_processes": [
        f"{APACHE}{AGAIN}: AH03104: ap_thread_create: unable to create worker thread",
        f"{APACHE}{AGAIN}: AH00159: fork: Unable to fork new process",
    ],
    "apache.proxy_pool": [f"{APACHE}AH00941: HTTP: failed to acquire connection for (127.0.0.1:8080)"],
    "apache.proxy_error_state": [
        f"{APACHE}AH00959: ap_proxy_connect_backend disabling worker for (127.0.0.1:8080) for 60s",
        f"{APACHE}AH00940: HTTP: disabled connection for (127.0.0.1:8080)",
    ],
    "apache.proxy_backend": [
        f"{APACHE}(111)Connection refused: AH00957: HTTP: attempt to connect to 127.0.0.1:8080 (*) failed",
        (
            f"{APACHE}(2)No such file or directory: AH02454: FCGI: attempt to connect to Unix domain socket "
            "/run/php.sock (*) failed"
        ),
        f"{APACHE}AH01079: failed to make connection to backend: httpd-UDS",
        f"{APACHE}(104)Connection reset by peer: AH01075: Error dispatching request to : (polling)",
        f"{APACHE}(104)Connection reset by peer: AH01102: error reading status line from remote server web",
    ],
    "nginx.worker_connections": [
        "2026/11/26 18:45:56 [alert] 8#8: 20 worker_connections are not enough",
        f"{NGINX}*3 20 worker_connections are not enough while connecting to upstream{REQUEST}",
        "2026/11/26 18:45:56 [warn] 8#8: 20 worker_connections are not enough, reusing connections",
    ],
    "nginx.open_files": [
        "2026/11/26 18:45:56 [crit] 8#8: accept4() failed (24: Too many open files)",
        "2026/11/26 18:45:56 [alert] 8#8: setrlimit(RLIMIT_NOFILE, 9999) failed (1: Operation not permitted)",
    ],
    "nginx.upstream_ports": [
        (
            f"{NGINX}*3 connect() to 127.0.0.1:8082 failed (99: Cannot assign requested address) while "
            f"connecting to upstream{REQUEST}"
        ),
    ],
    "nginx.upstream_queue": [
        (
            f"{NGINX}*3 connect() to unix:/run/php.sock failed (11: Resource temporarily unavailable) while "
            f"connecting to upstream{REQUEST}"
        ),
    ],
    "nginx.upstream_down": [f"{NGINX}*3 no live upstreams while connecting to upstream{REQUEST}"],
    "nginx.upstream_refused": [
        f"{NGINX}*3 connect() failed (111: Connection refused) while connecting to upstream{REQUEST}",
        (
            f"{NGINX}*3 connect() to unix:/run/php.sock failed (2: No such file or directory) while "
            f"connecting to upstream{REQUEST}"
        ),
    ],
    "nginx.upstream_timeout": [
        f"{NGINX}*3 upstream timed out (110: Connection timed out) while reading response header{REQUEST}",
        f"{NGINX}*3 upstream timed out (110: Operation timed out) while connecting to upstream{REQUEST}",
    ],
    "nginx.upstream_header": [
        f"{NGINX}*3 upstream sent too big header while reading response header from upstream{REQUEST}",
    ],
    "nginx.upstream_temporary_file": [
        (
            "2026/11/26 18:45:56 [warn] 8#8: *3 an upstream response is buffered to a temporary file "
            f"/var/lib/nginx/proxy/1/00/0000000001 while reading upstream{REQUEST}"
        ),
    ],
    "nginx.request_temporary_file": [
        (
            "2026/11/26 18:45:56 [warn] 8#8: *3 a client request body is buffered to a temporary file "
            f"/var/lib/nginx/body/0000000001{REQUEST}"
        ),
    ],
    "nginx.thread_pool": [f'{NGINX}*3 thread pool "default" queue overflow: 65536 tasks waiting{REQUEST}'],
    "nginx.worker_killed": ["2026/11/26 18:45:56 [alert] 7#7: worker process 8 exited on signal 9"],
    "php-fpm.memory_of_children": [f"{PHP}child 812 exited on signal 9 (SIGKILL) after 3.123456 seconds"],
    "php-fpm.max_children": [
        f"{PHP}server reached pm.max_children setting (5), consider raising it",
        f"{PHP}server reached max_children setting (5), consider raising it",
    ],
    "php-fpm.process_max": [
        (
            "[26-Nov-2026 18:45:56] WARNING: The maximum number of processes has been reached. Please review "
            "your configuration and consider raising 'process.max'"
        ),
    ],
    "php-fpm.spare_children": [
        (
            f"{PHP}seems busy (you may need to increase pm.start_servers, or pm.min/max_spare_servers), "
            "spawning 8 children, there are 0 idle, and 5 total children"
        ),
    ],
    "php-fpm.terminated": [
        (
            f'{PHP}child 812, script "/srv/a.php" (request: "GET /a.php") execution timed out (10.123456 '
            "sec), terminating"
        ),
    ],
    "haproxy.file_descriptors": [
        f"{HAPROXY}Proxy web reached process FD limit (maxsock=4036). Please check 'ulimit-n' and restart.",
        f"{HAPROXY}Proxy web reached system FD limit (maxsock=4036). Please check system tunables.",
    ],
    "haproxy.queue_timeout": [
        f'{HAPROXY}{ASKED}/<NOSRV> 0/5000/-1/-1/5000 503 217 - - sQ-- 20/20/18/0/0 0/18 "GET / HTTP/1.1"',
    ],
    "haproxy.no_server": [
        f"{HAPROXY}backend app has no server available!",
        f'{HAPROXY}{ASKED}/one 0/0/-1/-1/3001 503 217 - - SC-- 1/1/0/0/3 0/0 "GET / HTTP/1.1"',
    ],
    "caddy.upstream_ports": [f'{CADDY}"dial tcp 127.0.0.1:8082: connect: cannot assign requested address"}}'],
    "caddy.upstream_down": [
        f'{CADDY}"dial tcp 127.0.0.1:8082: connect: connection refused"}}',
        f'{CADDY}"dial tcp 192.0.2.9:8082: i/o timeout"}}',
        f'{CADDY}"no upstreams available"}}',
    ],
    "kernel.connection_table": [
        f"{KERNEL}nf_conntrack: nf_conntrack: table full, dropping packet",
        f"{KERNEL}nf_conntrack: nf_conntrack: table full in netns 4026531840, dropping packet",
    ],
    "kernel.out_of_memory": [
        f"{KERNEL}Out of memory: Killed process 812 (nginx) total-vm:305868kB, anon-rss:36288kB",
    ],
    "kernel.container_memory": [
        f"{KERNEL}Memory cgroup out of memory: Killed process 812 (php-fpm8.2) total-vm:305868kB",
    ],
    "kernel.open_files": [f"{KERNEL}VFS: file-max limit 1024 reached"],
    "kernel.tcp_memory": [f"{KERNEL}TCP: out of memory -- consider tuning tcp_mem"],
    "kernel.orphans": [f"{KERNEL}TCP: too many orphaned sockets"],
    "kernel.neighbours": [f"{KERNEL}neighbour: arp_cache: neighbor table overflow!"],
    "kernel.syn_cookies": [
        f"{KERNEL}TCP: request_sock_TCP: Possible SYN flooding on port 80. Sending cookies.",
        f"{KERNEL}TCP: request_sock_TCP: Possible SYN flooding on port 0.0.0.0:80. Sending cookies.",
    ],
    "server.log_disk": [
        f'{NGINX}*3 pwrite() "/var/lib/nginx/body/0000000001" failed (28: No space left on device){REQUEST}',
        f"{APACHE}(28)No space left on device: AH00023: Could not create the mutex",
    ],
    "server.open_files": [
        f"{APACHE}(24)Too many open files: AH00046: unable to accept",
        f'{CADDY}"accept tcp [::]:80: accept4: too many open files"}}',
    ],
}
"""Lines of logs, by the rule that they prove."""

FILES = tuple(read_file(path)[1] for path in sorted(FOLDER.rglob("*.yaml")))


def patterns_of(file: RuleFile, name: str) -> list[str]:
    """Return the regular expressions for lines of logs that a rule has."""
    entries = (*file.rules[name].now, *file.rules[name].next)
    return [pattern for each in entries if (pattern := each.log or each.kernel_log)]


PATTERNS = {
    f"{file.advice}.{name}": patterns
    for file in FILES
    for name in file.rules
    if (patterns := patterns_of(file, name))
}

FORMS = {file.advice: file.message for file in FILES if file.message}
PROCESSES = {7, 8, 12}
"""Those that write the lines of nginx and HAProxy."""

HOSTILE = {
    "nginx": [
        f'{NGINX}*3 open() "/usr/share/nginx/html/SAID" failed (2: No such file or directory){REQUEST}',
        f'{NGINX}*3 open() "/srv/" SAID" failed (2: No such file or directory){REQUEST}',
        f'{NGINX}*3 FastCGI sent in stderr: "PHP message: SAID" while reading upstream{REQUEST}',
        f'{NGINX}*3 access forbidden by rule{REQUEST}, referrer: "SAID"',
        "2026/11/26 18:45:56 [alert] 4711#4711: SAID",
        "SAID",
    ],
    "apache": [
        f"{APACHE}[client 192.0.2.7:5] AH01630: client denied by server configuration: /srv/SAID",
        f"{APACHE}[client 192.0.2.7:5] AH01276: Cannot serve directory /srv/, referer: SAID",
        "[Thu Nov 26 18:45:56.123456 2026] [cgid:error] [pid 9] [client 192.0.2.7:5] AH01215: SAID: /cgi/a",
        "[Thu Nov 26 18:45:56.123456 2026] [php:notice] [pid 9] [client 192.0.2.7:5] SAID",
        "[Thu Nov 26 18:45:56.123456 2026] [php:notice] [pid 9] SAID",
        "SAID",
    ],
    "php-fpm": [
        f'{PHP}child 12 said into stderr: "SAID"',
        f'{PHP}child 12 said into stderr: "NOTICE: PHP message: SAID"',
        f'{PHP}child 12, script "/a.php" (request: "GET /a.php?SAID") executing too slow (5.1 sec), logging',
        "SAID",
    ],
    "haproxy": [
        "Nov 26 18:45:56 web haproxy[4711]: SAID",
        f'{HAPROXY}{ASKED}/one 0/0/0/1/1 200 217 - - ---- 1/1/0/0/0 0/0 {{SAID}} "GET /SAID HTTP/1.1"',
        "SAID",
    ],
    "caddy": [f'{CADDY}"handled request","request":{{"uri":"/SAID"}}}}', "SAID"],
}
"""Lines with a text of a client or an application, in place of SAID; and one that nginx did not write."""


def read_messages(line: str, server: str) -> list[str]:
    """Return what the program itself says in a line; for rules that servers share, what any of them says."""
    forms = [form for name, form in FORMS.items() if server in {name, "server"}]
    read = LogLine(text=line, source="error.log", at_s=None)
    return [each.message for form in forms for each in cut_messages([read], form, PROCESSES)]


def find_proved(line: str, server: str, patterns: list[str]) -> set[str]:
    """Return the expressions that find a line."""
    said = read_messages(line, server)
    return {pattern for pattern in patterns for message in said if re.match(pattern, message)}


def test_every_rule_that_reads_a_log_has_lines_here():
    assert MESSAGES.keys() == PATTERNS.keys()


@pytest.mark.parametrize("rule", MESSAGES)
def test_a_rule_finds_its_lines_by_each_of_its_expressions(rule: str):
    server = rule.partition(".")[0]
    found = {line: find_proved(line, server, PATTERNS[rule]) for line in MESSAGES[rule]}

    assert [line for line, patterns in found.items() if not patterns] == []
    assert {each for patterns in found.values() for each in patterns} == set(PATTERNS[rule])


@pytest.mark.parametrize("rule", [each for each in MESSAGES if not each.startswith("server.")])
def test_the_lines_of_one_limit_prove_no_other(rule: str):
    server = rule.partition(".")[0]
    others = {name: of for name, of in PATTERNS.items() if name.startswith(f"{server}.") and name != rule}
    proved = {name for name, of in others.items() for line in MESSAGES[rule] if find_proved(line, server, of)}

    assert proved == set()


@pytest.mark.parametrize("server", HOSTILE)
def test_what_a_client_or_an_application_writes_into_a_log_proves_nothing(server: str):
    own = {name: lines for name, lines in MESSAGES.items() if name.partition(".")[0] in {server, "server"}}
    texts = {said for lines in own.values() for line in lines for said in read_messages(line, "server")}
    patterns = [pattern for name in own for pattern in PATTERNS[name]]
    lines = [line.replace("SAID", said) for line in HOSTILE[server] for said in texts]

    assert {line for line in lines if find_proved(line, server, patterns)} == set()
