// A Kalah bot to start from.  Make choosePit and wantsToSwap cleverer; the rest can stay as it is.
//
// Both get the two halves of the board: own and other hold the seeds in the pits and, as the last number, in the
// store.  own[0] is our pit 1, the furthest from our store; opposite of own[i] lies other[pits - 1 - i].
"use strict";
const readline = require("readline");

// The pit to empty; pit 1 is own[0].  This is the place for your ideas.
function choosePit(own, other) {
  const pits = own.length - 1;
  // 1. A last seed in our store gives another turn: take one, the pit nearest to the store first.
  for (let i = pits - 1; i >= 0; i--) {
    if (own[i] > 0 && lastSeed(own, i) === pits) return i + 1;
  }
  // 2. Else capture as many seeds as we can; 3. else empty the fullest pit, the nearest of equal ones.
  let best = -1;
  for (let i = 0; i < pits; i++) {
    if (own[i] > 0 && (best < 0 || worth(own, other, i) >= worth(own, other, best))) best = i;
  }
  return best + 1;
}

// Whether to take the opponent's side, as our answer to its first move (the pie rule).  The opponent would move
// next, from our side.  So we swap if it is ahead and our side has no extra turn.
function wantsToSwap(own, other) {
  const pits = own.length - 1;
  for (let i = 0; i < pits; i++) {
    if (own[i] > 0 && lastSeed(own, i) === pits) return false;
  }
  return other[pits] > own[pits];
}

// The value of emptying own[i]: a capture counts far more than the seeds of a full pit.
function worth(own, other, i) {
  return 1000 * captured(own, other, i) + own[i];
}

// The index of the last seed of own[i]: from 0 our pits, then our store, then the other's pits.
function lastSeed(own, i) {
  return (i + own[i]) % (2 * own.length - 1); // the other's store is left out
}

// The seeds that own[i] captures: our last one and all opposite, if it falls in an empty pit.
function captured(own, other, i) {
  const pits = own.length - 1;
  const last = lastSeed(own, i);
  if (last >= pits || own[i] > 2 * pits + 1 || (own[last] > 0 && last !== i)) return 0;
  const lapped = i + own[i] > 2 * pits; // then every pit of the other got a seed on the way
  const opposite = other[pits - 1 - last] + (lapped ? 1 : 0);
  return opposite > 0 ? opposite + 1 : 0;
}

// The board of the start, all pits full, from a game's name such as "manchester" or "kalah(6,4)".
function startBoard(game) {
  let [pits, seeds] = game.startsWith("bga") ? [6, 4] : [7, 7];
  if (game.includes("(")) {
    [pits, seeds] = game.slice(game.indexOf("(") + 1, game.indexOf(")")).split(",").map(Number);
  }
  const half = [...Array(pits).fill(seeds), 0];
  return [...half, ...half];
}

// The conversation with the referee: a line comes in, and we answer when it is our turn.
const game = process.env.KALARENA_GAME || "manchester";
const pieRule = (game.includes("+pie") || game.startsWith("manchester")) && !game.includes("+pie=no");
const opening = process.env.KALARENA_OPENING !== undefined; // some moves are made before the first turn
let seat = "";
let board = startBoard(game);
let myTurn = false;
let maySwap = false;

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const [word, ...fields] = line.split(";");
  if (word === "START") { // START;South moves first, START;North second
    seat = fields[0];
    myTurn = seat === "South" && !opening;
    maySwap = seat === "North" && !opening && pieRule;
  } else if (word === "CHANGE") { // CHANGE;<move>;<board>;<YOU, OPP or END>
    if (fields[0] === "SWAP") seat = seat === "South" ? "North" : "South"; // the opponent took our seat
    board = fields[1].split(",").map(Number);
    myTurn = fields[2] === "YOU";
  } else if (word === "END") {
    process.exit(0);
  } else { // TIME, which only bots that ask for it in bot.toml are told
    return;
  }
  if (!myTurn) return;
  const north = board.slice(0, board.length / 2);
  const south = board.slice(board.length / 2);
  const [own, other] = seat === "North" ? [north, south] : [south, north];
  let reply;
  if (maySwap && wantsToSwap(own, other)) {
    seat = "South";
    reply = "SWAP";
  } else {
    reply = `MOVE;${choosePit(own, other)}`;
  }
  maySwap = false; // only our very first answer may be SWAP
  process.stderr.write(`${seat}: own [${own}], other [${other}]: ${reply}\n`); // only you get to see this
  process.stdout.write(`${reply}\n`);
});
