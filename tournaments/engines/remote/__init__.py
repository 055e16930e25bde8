"""Games on other machines, by Dask.

Begin at ``head.dask_engine``, the engine with the requested games; ``scheduler`` starts Dask's scheduler,
``worker`` runs on the other machines, ``slurm`` submits workers as jobs, and ``remote_engine`` has the
functions that the command line and the server share.  May import what ``tournaments.engines`` may.
"""
