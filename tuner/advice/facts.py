"""The facts that rules may use, by name: of the host, and of one server and its processes.

A fact that cannot be read is absent, and a rule that needs it finds nothing. Counters without `_ever` are
what was counted during the look.
"""

from collections.abc import Mapping

_COUNTED = {
    "listen_overflows": "connections that found a full accept queue (ListenOverflows)",
    "listen_drops": "connection requests that a listening socket dropped (ListenDrops)",
    "syn_drops": "SYNs dropped because the request queue was full (TCPReqQFullDrop)",
    "cookies_sent": "SYN cookies sent because the request queue was full (SyncookiesSent)",
    "backlog_drops": "packets dropped because a socket's backlog was full (TCPBacklogDrop)",
    "time_wait_overflows": "TIME-WAIT sockets beyond tcp_max_tw_buckets (TCPTimeWaitOverflow)",
    "tcp_memory_pressures": "times that TCP reached its memory limit (TCPMemoryPressures)",
    "tcp_memory_aborts": "connections aborted for lack of TCP memory (TCPAbortOnMemory)",
    "retransmits": "TCP segments sent again (RetransSegs)",
    "segments": "TCP segments sent (OutSegs)",
    "packets": "packets received, loopback included (softnet_stat, column 1)",
    "packets_dropped": "packets dropped at full per-CPU input queues (softnet_stat, column 2)",
    "packets_squeezed": "times that packet processing ran out of its budget (softnet_stat, column 3)",
    "conntrack_drops": "packets dropped because the connection table was full (nf_conntrack)",
    "oom_kills": "processes that the kernel killed for lack of memory (vmstat, oom_kill)",
    "pages_swapped_out": "pages written to swap (vmstat, pswpout)",
}
HOST_FACTS: Mapping[str, str] = {
    "cores": "CPUs that are online",
    "memory_mib": "memory of the host, MiB",
    "open_files_max": "highest open-file limit that can be set",
    "somaxconn": "net.core.somaxconn",
    "look_s": "length of the look, seconds",
    "available_mib": "memory that can be had without swapping, MiB (MemAvailable)",
    "swap_used_mib": "swap in use, MiB",
    "idle_share": "share of the host's CPU time that was idle during the look",
    "cpu_pressure": "share of the look in which a runnable task waited for a CPU (PSI)",
    "memory_pressure": "share of the look in which a task waited for memory (PSI)",
    "io_pressure": "share of the look in which a task waited for the disk (PSI)",
    "time_wait": "sockets in TIME-WAIT",
    "orphans": "connections that no process holds any more",
    "ports": "local ports for outgoing connections (ip_local_port_range)",
    "ports_used": "local ports in use to one remote address, at most",
    "files_open": "open files of the host (fs.file-nr)",
    "files_max": "open files that the host allows (fs.file-max)",
    "conntrack": "tracked connections",
    "conntrack_max": "tracked connections that the table holds",
    **_COUNTED,
    **{f"{name}_ever": f"since boot: {told}" for name, told in _COUNTED.items()},
}
_COUNTED_OF_A_GROUP = {
    "memory_limit_hits": "times that the control group reached its memory limit",
    "group_oom_kills": "processes of the control group killed for lack of memory",
    "tasks_refused": "processes and threads that the control group refused",
}
SERVER_FACTS: Mapping[str, str] = {
    "server": "name of the adapter",
    "workers": "worker processes",
    "threads": "threads of all workers",
    "uptime_s": "seconds since the first process started",
    "settled_s": "seconds since the workers read the configuration that the files hold",
    "worker_mib": "memory of one worker, MiB (mean PSS)",
    "grown_mib": "memory of one worker that has served requests, MiB (mean PSS); 0 if none has",
    "used_mib": "memory of the first process and all workers, MiB (PSS)",
    "open_files": "open files of the worker with the most",
    "sockets": "sockets of the worker with the most, without listening sockets of other workers",
    "open_files_limit": "soft limit for open files of a worker",
    "cpu_used": "CPUs that the server's processes used during the look",
    "cpu_wanted": "CPUs that they used or waited for; only main threads are seen waiting",
    "connections": "established connections at the server's ports",
    "idle_connections": "those of them on which no request came since the last response, for 0.3 s or more",
    "queue_waiting": "connections in the fullest accept queue",
    "queue_limit": "length of that queue",
    "cpu_quota": "CPUs that the control group allows",
    "throttled_share": "share of quota periods in which the control group was stopped during the look",
    "memory_limit_mib": "memory that the control group allows, MiB",
    "tasks": "processes and threads of the control group",
    "tasks_limit": "processes and threads that the control group allows",
    "log_disk_free_mib": "free space on the disk of the error log, MiB",
    **_COUNTED_OF_A_GROUP,
    **{f"{name}_ever": f"since its start: {told}" for name, told in _COUNTED_OF_A_GROUP.items()},
}
