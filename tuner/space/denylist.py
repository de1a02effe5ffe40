"""Security settings that no space may tune or set: those of the kernel, and what a server adapter denies.

There is no way around it. Those of the kernel hold for the spaces of every server.
"""

import re
from fnmatch import fnmatchcase

from tuner import plugins
from tuner.space.problems import Place, problem

# The kernel: Documentation/admin-guide/sysctl/{kernel,net,fs,vm}.rst, admin-guide/LSM/Yama.rst,
# networking/ip-sysctl.rst. Patterns are lower case; * also matches an interface name.
_KERNEL = {
    "kernel.randomize_va_space": "address space randomisation",
    "vm.mmap_rnd_bits": "address space randomisation",
    "vm.mmap_rnd_compat_bits": "address space randomisation",
    "vm.mmap_min_addr": "protection against null-pointer exploits",
    "net.ipv4.tcp_syncookies": "protection against SYN floods",
    "net.ipv4.tcp_rfc1337": "protection of TIME_WAIT sockets",
    "net.ipv4.tcp_challenge_ack_limit": "protection against blind TCP resets",
    "net.ipv4.tcp_invalid_ratelimit": "protection against ACK loops",
    "net.*.rp_filter": "reverse path filtering",
    "net.*.accept_redirects": "ICMP redirects",
    "net.*.send_redirects": "ICMP redirects",
    "net.*.secure_redirects": "ICMP redirects",
    "net.*.shared_media": "ICMP redirects",
    "net.*.accept_source_route": "source routing",
    "net.*.accept_local": "filtering of spoofed local addresses",
    "net.*.route_localnet": "filtering of spoofed loopback addresses",
    "net.*.accept_ra*": "router advertisements",
    "net.*.log_martians": "logging of impossible addresses",
    "net.*.proxy_arp*": "ARP answers for other hosts",
    "net.*.arp_accept": "gratuitous ARP",
    "net.*.drop_*": "packet filtering",
    "net.*.forwarding": "packet forwarding between networks",
    "net.*.mc_forwarding": "packet forwarding between networks",
    "net.ipv4.ip_forward*": "packet forwarding between networks",
    "net.ipv4.ip_unprivileged_port_start": "permission to bind privileged ports",
    "net.ipv4.ip_nonlocal_bind": "permission to bind foreign addresses",
    "net.ipv4.ping_group_range": "permission to send ICMP",
    "net.ipv4.icmp_echo_ignore_*": "protection against ICMP amplification",
    "net.ipv4.icmp_ignore_bogus_error_responses": "protection against bogus ICMP",
    "net.core.bpf_jit_harden": "hardening of the BPF compiler",
    "net.core.bpf_jit_kallsyms": "hiding of kernel addresses",
    "kernel.unprivileged_bpf*": "permission to load BPF programs",
    "kernel.bpf_*": "permission to load BPF programs",
    "kernel.yama.*": "permission to trace processes",
    "kernel.apparmor*": "mandatory access control",
    "kernel.dmesg_restrict": "permission to read the kernel log",
    "kernel.kptr_restrict": "hiding of kernel addresses",
    "kernel.perf_event_paranoid": "permission to profile the kernel",
    "kernel.unprivileged_userns*": "permission to make user namespaces",
    "kernel.io_uring_disabled": "permission to use io_uring",
    "kernel.io_uring_group": "permission to use io_uring",
    "kernel.modules_disabled": "loading of kernel modules",
    "kernel.modprobe": "a program that the kernel runs as root",
    "kernel.hotplug": "a program that the kernel runs as root",
    "kernel.core_pattern": "a program that the kernel runs as root",
    "kernel.core_uses_pid": "place of memory dumps",
    "kernel.usermodehelper*": "programs that the kernel runs as root",
    "kernel.poweroff_cmd": "a program that the kernel runs as root",
    "kernel.kexec_load*": "replacement of the running kernel",
    "kernel.sysrq": "control over the machine by keyboard",
    "kernel.stack_erasing": "hardening of kernel stacks",
    "kernel.cad_pid": "process that receives Ctrl-Alt-Del",
    "kernel.tainted": "record of untrusted kernel code",
    "kernel.ftrace_enabled": "tracing of the kernel",
    "dev.tty.*": "terminal line disciplines",
    "fs.protected_*": "protection of links and files in shared directories",
    "fs.suid_dumpable": "core dumps of privileged programs",
    "fs.binfmt_misc*": "programs that the kernel runs",
    "user.max_*_namespaces": "permission to make namespaces",
    "vm.unprivileged_userfaultfd": "permission to handle page faults",
}


def refuse_denied(name: str, server: str, place: Place | str) -> None:
    """Raise UsageError when the setting is one of security."""
    plain = re.sub(r"\[[0-9]*\]$", "", name).lower().replace("/", ".")
    reasons = [reason for pattern, reason in _KERNEL.items() if fnmatchcase(plain, pattern)]
    if any(fnmatchcase(plain, pattern) for pattern in plugins.denied_settings(server)):
        reasons.append("access control or protection of the server")
    if reasons:
        wrong = f"{name} is a security setting ({reasons[0]}), which tuner never changes"
        raise problem(place, wrong, "Remove this setting; no option allows changes of it")
