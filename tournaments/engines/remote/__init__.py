"""Games on other machines, by Dask.

Begin at ``remote_engine``, which starts scheduler, workers and engine in order; ``worker`` runs on the other
machines, ``slurm`` submits workers as jobs.
"""
