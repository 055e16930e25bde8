// A game that goes on: takes moves, clocks and the verdict from the server's stream, and hands moves to the viewer.
"use strict";
(() => {
  const page = document.querySelector("[data-live-events]");
  if (!page || !page.dataset.liveEvents) return;
  const root = document.getElementById("replay"), source = document.getElementById("replay-data");
  const body = document.querySelector(".replay-moves tbody");
  const badge = page.querySelector(".live-badge"), verdict = page.querySelector(".live-verdict");
  const clocks = [...page.querySelectorAll("[data-clock]")];
  const players = clocks.map((clock) => clock.dataset.name);
  let known = source ? JSON.parse(source.textContent).plies.length : 0;
  let over = false;

  // The clocks: what they showed when the turn began, less what has passed since.

  let shown = JSON.parse(page.dataset.liveClocks), since = performance.now();

  function clockText(ms) {
    const left = Math.max(0, ms), minutes = Math.floor(left / 60000), seconds = (left % 60000) / 1000;
    const text = left < 10000 ? (Math.floor(seconds * 10) / 10).toFixed(1) : String(Math.floor(seconds));
    return `${minutes}:${text.padStart(left < 10000 ? 4 : 2, "0")}`;
  }

  function tick() {
    clocks.forEach((clock, player) => {
      const runs = shown.on_turn === player;
      const used = runs ? shown.elapsed_ms + performance.now() - since : 0;
      clock.textContent = shown.clocks_ms ? clockText(shown.clocks_ms[player] - used) : "";
      clock.closest(".live-clock").classList.toggle("runs", runs);
    });
  }

  // Moves.

  function cell(row, text, look) {
    const made = row.appendChild(document.createElement("td"));
    if (look) made.className = look;
    made.textContent = text;
    return made;
  }

  function addRow(ply, number) {
    const row = body.appendChild(document.createElement("tr"));
    const link = cell(row, "").appendChild(document.createElement("a"));
    link.href = `#ply=${number}`;
    link.textContent = number;
    const bot = cell(row, "", `replay-player p${ply.player}`).appendChild(document.createElement("bdi"));
    bot.textContent = players[ply.player];
    cell(row, ply.move);
    cell(row, ply.time);
    cell(row, "", "replay-more");
    cell(row, "", "replay-more");
  }

  function add({ after, plies }) {
    if (after > known) { // something is missing: ask for all that we do not have
      stream.open();
      return;
    }
    const news = plies.slice(known - after);
    if (!news.length || !root) return;
    news.forEach((ply, at) => addRow(ply, known + at + 1));
    known += news.length;
    root.dispatchEvent(new CustomEvent("replay-news", { detail: news }));
  }

  function end({ sentence, href }) {
    if (!verdict.textContent) verdict.textContent = sentence;
    if (href === undefined) return; // its record is still to come
    over = true;
    stream.close();
    verdict.textContent = sentence;
    badge.textContent = "over";
    badge.classList.add("over");
    page.dispatchEvent(new Event("live-over"));
    if (!href) return;
    const link = document.createElement("a");
    link.href = href;
    if (document.body.classList.contains("embedded")) link.target = "_blank";
    link.textContent = "The game's page";
    verdict.append(" ", link);
  }

  // The stream.

  const stream = eventStream({
    address: () => `${page.dataset.liveEvents}?after=${known}`,
    isOver: () => over,
    listeners: {
      state: (event) => {
        const state = JSON.parse(event.data);
        [shown, since] = [state, performance.now()];
        tick();
        add(state);
      },
      over: (event) => end(JSON.parse(event.data)),
      gone: () => location.reload(),
    },
  });

  setInterval(tick, 100);
  tick();
  stream.open();
})();
