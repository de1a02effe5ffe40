"""Servers and subsystems whose settings are tuned, one package or module each.

Every private instance keeps all it writes in its site's directory: the configuration, the pid file,
temporary files and its logs. A parameter has the name of its directive; where one directive takes several
values, of its part (`listen_backlog`, `net.ipv4.tcp_wmem[1]`). A directive that a space names and that has no
rule of its own is written as `name value`: a new space needs no new adapter.
"""
