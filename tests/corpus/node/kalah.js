"use strict";
// A small player of the Manchester protocol, which the Node bots of the corpus require.
const readline = require("node:readline");

const OPENING_HOLE = 5;

/** Return a hole with an extra turn if there is one, else the fullest hole; own ends with our store. */
function bestHole(own) {
  const pits = own.length - 1;
  const extra = own.findIndex((seeds, i) => i < pits && seeds > 0 && i + seeds === pits);
  if (extra >= 0) return extra + 1;
  return own.slice(0, pits).indexOf(Math.max(...own.slice(0, pits))) + 1;
}

/** Play one game; choose may be asynchronous. */
async function play(choose) {
  let seat = "";
  let maySwap = false;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [word, ...fields] = line.split(";");
    if (word === "END") return;
    if (word === "START") {
      seat = fields[0];
      maySwap = seat === "North";
      if (!maySwap) console.log(`MOVE;${OPENING_HOLE}`);
      continue;
    }
    const [move, state, turn] = fields;
    if (move === "SWAP") seat = "North";
    if (turn !== "YOU") continue;
    const board = state.split(",").map(Number);
    const north = board.slice(0, board.length / 2);
    const south = board.slice(board.length / 2);
    if (maySwap && Number(move) % 2 === 0) {
      seat = "South";
      console.log("SWAP");
    } else {
      console.log(`MOVE;${await choose(...(seat === "North" ? [north, south] : [south, north]))}`);
    }
    maySwap = false;
  }
}

module.exports = { bestHole, play };
