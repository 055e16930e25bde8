"use strict";
// Logs in a sub-folder that it makes beside itself, and keeps a table of 100 MB.
const fs = require("node:fs");
const path = require("node:path");
const kalah = require("./kalah.js");

const folder = path.join(__dirname, "logs");
fs.mkdirSync(folder, { recursive: true });
const log = path.join(folder, `game-${process.pid}.log`);
const table = new Float64Array(13e6).fill(1);

kalah.play((own, other) => {
  fs.appendFileSync(log, `${new Date().toLocaleString()} ${own} ${other}\n`);
  return table[own[0]] * kalah.bestHole(own);
});
