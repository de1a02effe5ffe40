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
    "passive_opens": "TCP connections that were accepted (PassiveOpens)",
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
    "open_files_max": "highest limit of open files that this host lets a process set (fs.nr_open)",
    "somaxconn": "net.core.somaxconn",
    "look_s": "seconds between the two moments at which `advise` reads the counters (the look)",
    "booted_h": "hours since the host booted",
    "available_mib": "memory that programs can take before the host swaps, MiB (MemAvailable)",
    "swap_used_mib": "swap in use, MiB",
    "idle_share": "share of the host's CPU time that was idle during the look",
    "cpu_pressure": "share of the look in which a runnable task waited for a CPU (PSI)",
    "memory_pressure": "share of the look in which a task waited for memory (PSI)",
    "io_pressure": "share of the look in which a task waited for the disk (PSI)",
    "time_wait": "sockets in TIME-WAIT",
    "orphans": "TCP connections that no process holds any more",
    "ports": "local ports for outgoing connections (ip_local_port_range)",
    "ports_used": "local ports in use to the remote address that uses most of them",
    "neighbours_max": "most machines of the local network that the kernel keeps in its neighbour (ARP) "
    "table (gc_thresh3)",
    "fullest_waiting": "connections in the fullest accept queue of the host",
    "fullest_limit": "connections that this fullest queue can hold",
    "fullest_address": "address and port of this fullest queue",
    "requests_waiting": "TCP connections being opened (SYN_RECV) at the port that has most of them",
    "requests_limit": "length of the accept queue of that port; it also limits the connections being opened",
    "requests_address": "address and port at which most connections are being opened",
    "files_open": "open files of the host (fs.file-nr)",
    "files_max": "open files that the host allows (fs.file-max)",
    "conntrack": "tracked connections",
    "conntrack_max": "connections that the table of tracked connections can hold",
    **_COUNTED,
    **{f"{name}_ever": f"since boot: {told}" for name, told in _COUNTED.items()},
}
_COUNTED_OF_A_GROUP = {
    "memory_limit_hits": "times that the control group reached its memory limit, also by page cache",
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
    "open_files": "open files of the worker that has most of them",
    "sockets": "open sockets of the worker that has most of them; listening sockets of other workers "
    "do not count",
    "open_files_limit": "soft limit for open files of a worker",
    "open_files_most": "highest open-file limit that the server itself can set for its workers",
    "cpu_used": "CPUs that the server's processes used during the look",
    "cpu_wanted": "CPUs that the server's processes used or waited for; of waiting threads only main "
    "threads count",
    "connections": "established connections at the server's ports",
    "idle_connections": "established connections on which no request came for 0.3 s or more after the last "
    "response",
    "queue_waiting": "connections in the server's fullest accept queue",
    "queue_lasting": "connections that waited in the server's fullest accept queue at both moments of the "
    "look",
    "queue_limit": "connections that this queue can hold",
    "queue_address": "address and port, or socket, of this queue",
    "cpu_quota": "CPUs that the control group allows",
    "cpus_allowed": "CPUs that the server may use: the CPUs of its CPU set, but at most its quota "
    "(rounded up)",
    "throttled_share": "share of quota periods in which the control group was stopped during the look",
    "memory_limit_mib": "memory that the control group allows, MiB",
    "memory_group": "control group that has this memory limit: the server's own group, or a group above it",
    "group_used_mib": "memory that this control group uses, without page cache, MiB",
    "room_mib": "memory that the server can still take before its host or its control group has none "
    "left, MiB",
    "tasks_group": "control group with the limit of processes and threads",
    "tasks": "processes and threads of this control group",
    "tasks_room": "processes and threads that this control group may still start; 1,000,000 if there is "
    "no limit",
    "tasks_limit": "processes and threads that the control group allows",
    "log_disk_free_mib": "free space on the disk of the error log, MiB",
    **_COUNTED_OF_A_GROUP,
    **{f"{name}_ever": f"since the group was made: {told}" for name, told in _COUNTED_OF_A_GROUP.items()},
}
