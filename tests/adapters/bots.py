"""Bots of other protocols, as a stranger would write them: standard library only, nothing of Kalarena."""

TURNS_PYTHON = """\
import json, sys
for line in sys.stdin:
    turn = json.loads(line)
    moves = [move for move in turn["legal_moves"] if move != "SWAP"]
    print(moves[0], flush=True)
"""

TURNS_NODE = """\
const lines = require("readline").createInterface({input: process.stdin});
lines.on("line", line => {
  const turn = JSON.parse(line);
  const moves = turn.legal_moves.filter(move => move !== "SWAP");
  console.log(moves[moves.length - 1]);
});
"""

TURNS_LUA = """\
for line in io.lines() do
  local moves = line:match('"legal_moves":%[(.-)%]')
  local last
  for move in moves:gmatch('"(.-)"') do if move ~= "SWAP" then last = move end end
  print(last) io.flush()
end
"""

KGP_PYTHON = """\
import os, socket
server = socket.create_connection((os.environ["KGP_HOST"], int(os.environ["KGP_PORT"])))
lines = server.makefile("rw", newline="")
def send(text):
    lines.write(text + "\\r\\n")
    lines.flush()
for line in lines:
    first, *rest = line.split()
    number = first.split("@")[0]
    name, *arguments = rest if number.isdigit() else (first, *rest)
    if name == "kgp":
        send("mode freeplay")
    elif name == "state":
        pits, own, other, *seeds = map(int, arguments[0][1:-1].split(","))
        move = max(pit for pit in range(pits) if seeds[pit]) + 1
        send(f"@{number} move {move}")
        send(f"@{number} yield")
    elif name == "ping":
        send(f"@{number} pong")
    elif name == "goodbye":
        break
"""

KGP_NODE = """\
const net = require("net");
const server = net.connect(+process.env.KGP_PORT, process.env.KGP_HOST);
let id = 1;
const send = text => server.write(text + "\\n");
require("readline").createInterface({input: server}).on("line", line => {
  const match = line.match(/^(?:(\\d+)(?:@(\\d+))? )?(\\w+)(?: (.*))?$/);
  if (!match) return;
  const [, number, , name, rest] = match;
  if (name === "kgp") { send(`${id} set info:name "client"`); send(`${id + 2} mode freeplay`); id += 4; }
  else if (name === "state") {
    const numbers = rest.slice(1, -1).split(",").map(Number);
    const pits = numbers[0];
    for (let pit = 1; pit <= pits; pit++)
      if (numbers[2 + pit] > 0) { send(`${id}@${number} move ${pit}`); id += 2; }
  }
  else if (name === "goodbye") server.end();
});
"""
"""It sends one preliminary move after the other, and no ``yield``."""

KGP_SIMPLE = """\
import os, socket
server = socket.create_connection((os.environ["KGP_HOST"], int(os.environ["KGP_PORT"])))
lines = server.makefile("rw", newline="\\r\\n")
def send(text):
    lines.write(text + "\\r\\n")
    lines.flush()
for line in lines:
    name, *arguments = line.split()
    if name == "kgp":
        send("mode simple")
    elif name == "state":
        pits, own, other, *seeds = map(int, arguments[0][1:-1].split(","))
        send(f"move {max(pit for pit in range(pits) if seeds[pit]) + 1}")
        send("yield")
    elif name == "goodbye":
        break
"""

KGP_WEBSOCKET = """\
import os, socket, struct, sys
server = socket.create_connection(("127.0.0.1", int(sys.argv[1].split(":")[2].split("/")[0])))
assert "KGP_PORT" not in os.environ
server.sendall(b"GET /socket HTTP/1.1\\r\\nHost: localhost\\r\\n"
    b"Upgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\nSec-WebSocket-Version: 13\\r\\n"
    b"Sec-WebSocket-Protocol: kgp, other\\r\\n\\r\\n")
data = server.makefile("rb")
headers = b"".join(iter(data.readline, b"\\r\\n"))
assert b"101 " in headers and b"Sec-WebSocket-Protocol: kgp" in headers, headers
def frame(code, payload, last=True):
    server.sendall(bytes([code | 128 * last, 128 | len(payload)]) + bytes(4) + payload)
def messages():
    while True:
        code, length = data.read(2)
        if length == 126:
            length, = struct.unpack("!H", data.read(2))
        payload = data.read(length)
        if code == 0x81:
            yield from payload.decode().splitlines()
        elif code == 0x88:
            frame(8, payload)
            return
for line in messages():
    first, *rest = line.split()
    number = first.split("@")[0]
    name, *arguments = rest if number.isdigit() else (first, *rest)
    if name == "kgp":
        frame(9, b"ping")
        frame(1, b"mode ", last=False)
        frame(9, b"between the pieces")
        frame(0, b"freeplay")
    elif name == "state":
        pits, own, other, *seeds = map(int, arguments[0][1:-1].split(","))
        move = max(pit for pit in range(pits) if seeds[pit]) + 1
        frame(2, f"@{number} move {move}\\n@{number} yield\\r\\n".encode())
"""
"""A WebSocket client that sends pieces of messages, pings and bytes, and offers subprotocols."""
