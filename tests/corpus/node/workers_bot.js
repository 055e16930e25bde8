"use strict";
// Searches with a worker thread for each core (four at most), each of which gets some of the holes.
const os = require("node:os");
const { Worker, isMainThread, parentPort } = require("node:worker_threads");
const kalah = require("./kalah.js");

if (isMainThread) {
  const workers = Array.from({ length: Math.min(4, os.cpus().length) }, () => new Worker(__filename));
  const ask = (worker, own) =>
    new Promise((resolve) => {
      worker.once("message", resolve);
      worker.postMessage(own);
    });
  kalah
    .play(async (own) => (await Promise.all(workers.map((worker) => ask(worker, own))))[0])
    .then(() => process.exit(0));
} else {
  parentPort.on("message", (own) => parentPort.postMessage(kalah.bestHole(own)));
}
