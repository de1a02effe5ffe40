"""What hostile study files and spaces are made of: what each key may hold that it should not."""

from collections.abc import Mapping, Sequence

from tests.property.hostile_values import INJECTIONS, NUMBERS, WORDS

Keys = tuple[str, ...]
"""The way to a value of a study file."""

EXPRESSIONS = (
    "9**9**9", "2**10**9", "10**18 * 10**18", "1e308 * 10", "1/0", "0/0", "nan", "inf", "log2(0)",
    "log2(-1)", "(-8)**0.5", "("*90+"1"+")"*90, "("*190+"1"+")"*190, "-"*390+"1", "not "*90+"1",
    "9"*390, "0x"+"f"*300, "1"+"+1"*190, "'a' * 10**9", "'%s' % cores", "f'{cores}'", "b'x'", "1j",
    "...", "[1 for x in y]", "().__class__.__bases__", "__import__('os').system('id')", "lambda: 1",
    "cores.real", "x := 1", "at_least('9.9')", "at_least('"+"9"*300+"')", "at_least(1)",
    "max("+"1,"*150+"1)", "max(1)", "int('9')", "round(1.5, 9)", "cores if", "cores\u200b",
    "\uff43\uff4f\uff52\uff45\uff53", "cores and 'x; y'",
    "'1; error_log /tmp/x debug; thread_pool b threads=1'", "'off' if cores else 'on'",
    "cores or '|id'", "~1", "1 < 2 < 3", "worker_processes", "own", "unknown", "min(cores, 'a')",
    "1 is 1", "True", "None", "'\\n'", "", " ", "\x00", "#", "yield", "await x", "*cores", "cores[0]",
    "{1: 2}", "{1}", "print(1)", "eval('1')", "abs(-10**18)", "10**18",
)  # fmt: skip
NAMES = (
    "worker_connections", "worker_processes", "thread_pool_threads", "output_buffers_size",
    "listen_backlog", "open_file_cache", "access_log", "aio", "worker_rlimit_nofile", "ThreadsPerChild",
    "CustomLog", "AcceptFilter", "MaxRequestWorkers", "ListenBacklog", "num-threads", "access-log",
    "pm", "net.core.somaxconn", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_wmem[1]",
    "net.ipv4.tcp_wmem[99]", "kernel.core_pattern", "kernel.randomize_va_space",
    "net.ipv4.conf.all.rp_filter", "vm.swappiness", "LoadModule", "ErrorLog", "Include", "load_module",
    "error_log", "user", "User", "SSLProtocol", "ssl_protocols", "cores", "if", "__class__", "own",
    "a b", "x;y", "x\ny", "", "\u00e9", "A"*200, "worker-connections",
)  # fmt: skip
PATHS = (
    "/", "/root", "~", "~root", "~nobody/x", "..", "../"*12+"etc", "/etc/passwd", "/etc/shadow",
    "/dev/zero", "/dev/stdin", "/dev/tty", "/proc/self/root", "/proc/self/mem", "/proc/kmsg",
    "/dev", "/nowhere", "./own.yaml", "./pipe.yaml", "./study.yaml", "a\x00b", "a\nb", "x"*5000,
    "/"+"a/"*3000, "|id", "-", "--help", "$(id)", ".yaml",
)  # fmt: skip
TEXTS = (*INJECTIONS, *WORDS, *PATHS)
LISTS = ([], [[]], [{}], [None], ["a", "a"], ["x"] * 3000, {"a": 1}, None, "", {"": {"": {}}})

STUDY_KEYS: Mapping[Keys, Sequence[object]] = {
    ("study",): ("../../x", "a/b", "..", "x" * 65, "lock", "-x", "a\x00", "\u202ex", 7, *LISTS),
    ("servers",): (
        ["nginx", "apache"],
        ["nginx", "h2o"],
        ["../x"],
        ["os:system"],
        ["nginx", "sysctl", "apache", "h2o"],
        ["php-fpm"],
        *LISTS,
    ),
    ("space",): (
        *([path] for path in PATHS),
        ["nginx", "nginx"],
        ["nginx", "apache-event"],
        ["nginx\x00"],
        *LISTS,
    ),
    ("space", "set"): tuple(dict.fromkeys(NAMES[:14], value) for value in ("x; y", 1, "9**9**9", -1, 10**18)),
    ("space", "only"): (["worker_connections"], ["LoadModule"], ["x"] * 5000, []),
    ("target", "host"): (
        "ssh://-oProxyCommand=touch /tmp/x",
        "ssh://x@-oProxyCommand=id",
        "ssh://127.0.0.1:1",
        "local",
        "ssh://u:p@h",
        "ssh://[::1%lo]:1",
        "file:///etc",
        "ssh://h/../..",
        "os:system",
        *LISTS,
    ),
    ("target", "mode"): ("managed", "root", "sandbox ", *LISTS),
    ("target", "watchdog_s"): (*NUMBERS, "nan", "1e999"),
    ("load", "generator"): ("command", "k6", "oha", "ab", "h2load", "../wrk", "os:system", *LISTS),
    ("load", "command"): (["sh", "-c", "touch /tmp/tuner-was-here"], ["/bin/id"], "id", *LISTS),
    ("load", "script"): PATHS,
    ("load", "result"): ({"correct": "/x"}, {"correct": "__import__('os')"}, {"x": "y"}, *LISTS),
    ("load", "host"): (
        "ssh://-oProxyCommand=touch /tmp/x",
        "ssh://127.0.0.1:1",
        ["local", "local"],
        "-oX",
        *LISTS,
    ),
    ("load", "path"): (
        "//127.0.0.1:1/",
        "http://127.0.0.1:1/",
        "/\r\nHost: x",
        "/../../etc/passwd",
        "/%00",
        "/" + "a" * 99999,
        "/index.html?$(id)",
        "-oX",
        "/\u202e",
        "/#",
        "/index.html#x",
        *PATHS,
        *LISTS,
    ),
    ("load", "connections"): (*NUMBERS, "9**9**9", "1_000", "\u0665", "1e4", *LISTS),
    ("load", "threads"): (*NUMBERS, "256"),
    ("load", "keepalive"): ("maybe", 2, *LISTS),
    ("load", "protocol"): ("h2c", "ftp", *LISTS),
    ("load", "token_directory"): ("/etc", "/etc/../root", "x", *LISTS),
    ("content",): (*PATHS, *LISTS),
    ("objective",): ("goodput", "latency_p99_ms", ["goodput", "x"], "__import__('os')", "9**9**9", *LISTS),
    ("constraints",): (
        ["failure_rate <= nan"],
        ["failure_rate <= 9**9**9"],
        ["x" * 9999],
        ["a <= b <= c"],
        *LISTS,
    ),
    ("budget", "preset"): ("quick", "../x", *LISTS),
    ("budget", "minutes"): (*NUMBERS, "nan", "inf", "1e999"),
    ("budget", "trials"): (*NUMBERS, "1e9"),
    ("storage",): (
        "sqlite:////tmp/tuner-was-here.db",
        "postgresql://u:p@127.0.0.1:1/x",
        "file:///etc/passwd",
        "://",
        "sqlite:///../../x",
        *PATHS[:6],
        *LISTS,
    ),
    ("seed",): (*NUMBERS, *LISTS),
    ("optimizer",): ("os:system", "subprocess:Popen", "antigravity:x", ":", "a:b:c", "gp\x00", *LISTS),
    ("warm_start",): (["/etc/shadow"], ["/dev/zero"], ["./study.yaml"], ["./pipe.yaml"], *LISTS),
    ("__class__",): (1,),
    ("<<",): ({"study": "x"},),
}

NUMERIC: Sequence[object] = (*NUMBERS, *EXPRESSIONS)
PARAMETER_KEYS: Mapping[str, Sequence[object]] = {
    "kind": ("int", "float", "categorical", "bool", "text", *LISTS),
    "low": NUMERIC,
    "high": NUMERIC,
    "default": (*NUMERIC, *TEXTS, "current"),
    "step": NUMBERS,
    "unit": TEXTS,
    "scale": ("log", "x"),
    "special": ({"off": "x; y"}, {"a\nb": 1}, {"off": 0}, {"current": 5}, {"off": "9**9**9"}, *LISTS),
    "choices": (*([text, "b"] for text in TEXTS), [1, "1"], ["on", "off"], *LISTS),
    "when": EXPRESSIONS,
    "since": ("1.2", "9" * 40, 1.2, "x"),
    "until": ("0.1", "99", "x"),
    "exists": PATHS,
    "risk": ("safe", "risky", "x"),
    "apply": ("live", "x"),
    "scope": ("host", "netns", "x"),
    "loopback": (False, "x"),
    "internal": (True, "x"),
    "why": TEXTS,
    "source": TEXTS,
    "command": ("id",),
}
RAW = (
    "!!python/object/apply:os.system ['touch /tmp/tuner-was-here']", "!!python/name:os.system",
    "!!binary aGk=", "!x 1", "&a 1", "*a", "&a [*a]", "<<: *a", "2001-01-01", "1:30", "0o17", "0b1",
    ".inf", ".nan", "~", "|\n  x", ">-\n  x", "'", '"', "["*40, "{a: "*40, "- - - -", "? x", "@x", "`x",
    "%x", "\t1", "yes", "1_000", "+1", "\u2028", "\ufeff", "\x07", "\x85",
)  # fmt: skip
BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n" % (each, each, *[each - 1] * 9) for each in b"bcdefghi"
)
