"""Makes a load of what a server's users really send, as its access log shows it.

A log is counted, not replayed: every trial needs the same load. Of each line only counts are kept. What may
identify somebody (addresses, user names, queries, cookies) is never kept.
"""
