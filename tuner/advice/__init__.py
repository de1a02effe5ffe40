"""Names the limits that a running server meets, from what the host already shows: no load and no change.

Rules are data in search_spaces/advice; `rule_file.py` explains every key. An evidence reader collects facts
of the kernel, the processes, the configuration and the logs; a rule whose evidence holds is a finding.
"""
