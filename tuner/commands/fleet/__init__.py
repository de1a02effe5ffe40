"""Studies on several hosts: a controller, and a worker for each host, on Dask distributed."""
