"""What server and load adapters share: a public package that foreign adapters may import, too.

For servers:
    programs: find the program on a host, read its version, its messages and its log.
    packages: say how a missing package is installed on a host.
    readback: read back what a running server really got: listen queues, processes, limits, status pages.
    services: describe what starts, reloads and stops an installed service.
    mounts: tell what can only be read, as in a container.
    config_files: read its files, match the patterns of an Include, write a drop-in.
    access_log: read its access logs.
For load generators:
    load_command: refuse what cannot be sent, and end a program after its window.
    load_output: read counts and quantities, and quote output that cannot be read.
    latency: summarize response times.
    bodies: judge from byte totals whether responses had the right length.

It imports only `tuner.ports` and `tuner.errors`. docs/adding-a-server.md shows its use.
"""
