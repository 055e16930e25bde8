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
    head, name, *arguments = line.split()
    number = head.split("@")[0]
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
  const match = line.match(/^(\\d+)(?:@(\\d+))? (\\w+)(?: (.*))?$/);
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
