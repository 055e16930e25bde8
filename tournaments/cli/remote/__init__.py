"""Commands that use a server over the network: `kalarena submit`, `challenge` and `connect`.

Begin at ``submit``, which uses the HTTP API by ``api_client``; ``connect`` lets a bot at home play, over a
WebSocket.  May import all layers.
"""
