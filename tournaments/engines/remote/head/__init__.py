"""The head's side of a cluster: the engine, the requested games, and the hosts on which they are played.

Begin at ``dask_engine``, which plays a job on the workers; ``head`` submits the tasks from the loop of
``asyncio_thread``.  May import what ``tournaments.engines`` may.
"""
