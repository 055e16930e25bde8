// A casual game: people point at cells of the board, or choose them by keyboard.  replay_board.js draws the board.
// This script contains no rules: the server sends the legal moves, each with the cells by which it is chosen.
"use strict";
(() => {
  const page = document.getElementById("play"), root = document.getElementById("replay");
  const source = document.getElementById("play-data");
  if (!page || !root || !source) return;
  const { board, start, you, bot, players: names, state: first } = JSON.parse(source.textContent);
  const base = page.dataset.base, calm = matchMedia("(prefers-reduced-motion: reduce)");
  const byId = (id) => document.getElementById(id);
  const frame = byId("play-board"), layer = byId("play-cells");
  const words = byId("play-words"), announced = byId("play-status");
  const problem = byId("play-problem"), choices = byId("play-choices"), body = byId("play-moves");
  const pristine = frame.querySelector("svg").cloneNode(true);
  const FINGER_PX = 44; // the least size of what a finger points at (WCAG 2.5.5)
  const FASTER = 1.6; // than a replay: a person waits for the bot's seeds

  let players = names, state = first, plies = [], stage = null, shown = 0, busy = false;
  let selected = null; // the cell that was chosen first, of a move that needs two
  let offered = []; // the moves that fit the chosen cells, if there are several
  let refusal = ""; // of the last action; it stays until the next one
  let focusWanted = false, sending = false;

  // The board.

  const steps = board.cells.map(([, x, y, shape]) => [x, y, shape]).filter(([, , shape]) => shape === 0);
  const step = Math.min(...steps.slice(1).map(([x, y]) => Math.hypot(x - steps[0][0], y - steps[0][1])));
  frame.style.setProperty("--play-least", `${Math.ceil(FINGER_PX * board.width / step)}px`);
  const scene = frame.parentElement;
  const centre = () => { scene.scrollLeft = (scene.scrollWidth - scene.clientWidth) / 2; };

  function rebuild() { // also after a take-back: the board has no way back
    frame.replaceChild(pristine.cloneNode(true), frame.querySelector("svg"));
    if (stage) stage.halt();
    stage = replayBoard(root, { board, start, plies }, () => FASTER);
    shown = plies.length;
    stage.show(shown);
    stage.mark(shown);
    stage.describe(shown);
    body.replaceChildren();
    plies.forEach(addRow);
    busy = false;
  }

  function made(parent, tag, text, look) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (look) element.className = look;
    return parent.appendChild(element);
  }

  function addRow(ply, at) {
    const row = made(body, "tr");
    made(row, "td", at + 1);
    made(made(row, "td", undefined, `replay-player p${ply.player}`), "bdi", players[ply.player]);
    made(row, "td", ply.move);
    const box = body.closest(".replay-moves");
    box.scrollTop = box.scrollHeight;
  }

  function caption(ply) {
    const said = stage.said[ply];
    for (const line of root.querySelectorAll(".replay-seat")) {
      const player = said.seats.findIndex(([seat]) => seat === board.seats[line.dataset.place]);
      const [seat, note, leads] = said.seats[player];
      line.replaceChildren();
      line.classList.toggle("leads", Boolean(leads));
      made(line, "bdi", player === you ? `${players[player]} (you)` : players[player], `replay-player p${player}`);
      made(line, "span", seat);
      made(line, "span", note, "replay-seat-note");
      made(line, "span", `${said.tallies[player]} ${board.tally}`, "replay-tally");
    }
  }

  // Sentences on the page, which screen readers announce: each move, then the player whose turn it is.

  function sentence(at) {
    const { player, move, tallies } = plies[at], mine = player === you;
    const who = mine ? "You" : players[player];
    if (move === "SWAP") return `${who} ${mine ? "swap" : "swaps"} sides.`;
    const before = stage.said[at].tallies, won = tallies ? tallies[player] - before[player] : 0;
    const gain = board.tally === "in store" && won > 1 ? `, and ${mine ? "win" : "wins"} ${won} seeds` : "";
    const next = plies[at + 1] ? plies[at + 1].player : state.to_move;
    const extra = next === player ? ` ${mine ? "You have" : `${who} has`} another turn.` : "";
    return `${who} ${mine ? "play" : "plays"} ${move}${gain}.${extra}`;
  }

  let recent = [], lastStatus = ""; // the sentences since one's own last turn began

  function say(from, before = []) { // shows all of them, and announces what is new
    const news = [...before, ...plies.slice(from).map((_, index) => sentence(from + index))];
    const begins = from < plies.length && plies[from].player === you && (!from || plies[from - 1].player !== you);
    if (begins || before.length || you === null) recent = news.length ? [] : recent;
    recent.push(...news);
    const now = state.status + (state.legal.some((one) => one.swap) ? " You may swap sides." : "");
    words.textContent = [...recent, now].join(" ");
    if (news.length || now !== lastStatus) announced.textContent = [...news, now].join(" ");
    lastStatus = now;
  }

  // News from the server.

  function take(news) {
    if (news.after > plies.length && news.revision === state.revision) { // something is missing
      stream.open();
      return;
    }
    const isBack = news.revision !== state.revision;
    if (news.revision < state.revision) return; // an answer that was overtaken
    if (!isBack && news.after + news.plies.length < plies.length) return;
    if (players.join("\n") !== news.players.join("\n")) { // the other seat was taken
      location.reload();
      return;
    }
    state = news;
    if (isBack) {
      plies = news.plies.slice();
      rebuild();
      say(plies.length, ["Taken back."]);
      render();
      return;
    }
    const before = plies.length;
    for (const ply of news.plies.slice(before - news.after)) {
      plies.push(ply);
      stage.lay(ply);
      addRow(ply, plies.length - 1);
    }
    say(before);
    if (!busy) advance();
  }

  function advance() { // shows the plies that are not shown yet, one after the other
    if (shown === plies.length) {
      busy = false;
      root.removeAttribute("aria-busy");
      stage.describe(shown);
      render();
      return;
    }
    busy = true;
    root.setAttribute("aria-busy", "true");
    shown += 1;
    const done = () => { stage.mark(shown); advance(); };
    caption(shown);
    if (calm.matches || document.hidden || !(plies[shown - 1].phases || []).length) {
      stage.show(shown);
      done();
    } else {
      stage.clearMarks();
      stage.animate(shown, done);
    }
  }

  // The moves that can be chosen.

  const target = (one) => one.from.length ? one.to : [];
  const opening = (one) => one.from.length ? one.from : one.to;
  const candidates = () => state.legal.filter((one) => one.from.includes(selected));

  function describeCell(cell) {
    const content = stage.contentOf(cell), name = board.cells[cell][0];
    if (typeof content === "number") return `${name}, ${content}`;
    return `${name}, ${content === null ? "empty" : board.pieces[content][1]}`;
  }

  function place(cell, quiet) {
    const [, x, y, shape] = board.cells[cell], [width, height] = board.shapes[shape];
    const button = made(layer, "button", undefined, quiet ? "quiet" : "");
    button.type = "button";
    button.dataset.cell = cell;
    button.style.left = `${100 * x / board.width}%`;
    button.style.top = `${100 * y / board.height}%`;
    const wide = Math.max(width, shape === 0 ? step : 0), high = Math.max(height, shape === 0 ? step : 0);
    button.style.width = `${100 * wide / board.width}%`;
    button.style.height = `${100 * high / board.height}%`;
    const ring = made(button, "span");
    ring.style.width = `${100 * width / wide}%`;
    ring.style.height = `${100 * height / high}%`;
    button.setAttribute("aria-label", describeCell(cell));
    return button;
  }

  function render() {
    const had = focusWanted || layer.contains(document.activeElement) || choices.contains(document.activeElement);
    const kept = document.activeElement && layer.contains(document.activeElement)
      ? Number(document.activeElement.dataset.cell) : null;
    const keptChoice = [...choices.children].indexOf(document.activeElement);
    layer.replaceChildren();
    choices.replaceChildren();
    caption(shown);
    const legal = busy || sending ? [] : state.legal;
    if (selected !== null && !candidates().length) selected = null;
    if (selected === null) {
      // Empty squares for a new stone are many: their marks are fainter than those of pits and of stones.
      const cells = new Map();
      legal.forEach((one) => opening(one).forEach((cell) => cells.set(cell, cells.get(cell) || one.from.length > 0)));
      [...cells].sort(([one], [other]) => one - other).forEach(([cell, strong]) => place(cell, !strong));
    } else {
      const cells = new Set(candidates().flatMap(target));
      const chosen = place(selected, false);
      chosen.classList.add("chosen");
      chosen.setAttribute("aria-pressed", "true");
      cells.forEach((cell) => place(cell, false).setAttribute("aria-label", `to ${describeCell(cell)}`));
    }
    offered = offered.filter((one) => legal.some((other) => other.move === one.move));
    const further = offered.length ? offered : legal.filter((one) => !one.from.length && !one.to.length);
    for (const one of further) choice(one, one.swap ? "Swap sides (pie rule)" : one.move);
    roving();
    for (const form of page.querySelectorAll("[data-play-act]")) {
      const what = form.getAttribute("action").split("/").pop();
      const wanted = { "take-back": state.may_take_back, retry: Boolean(state.trouble), resign: true }[what];
      form.hidden = state.over || !wanted;
    }
    const more = byId("play-again");
    if (more) more.hidden = !state.over;
    complain(refusal || state.trouble);
    choices.hidden = !choices.children.length;
    if (had) {
      const next = choices.children[keptChoice] || layer.querySelector(`[data-cell="${kept}"]`) || layer.querySelector("button") || choices.querySelector("button");
      if (next && !busy && !sending) {
        next.focus({ preventScroll: true });
        focusWanted = false;
      } else focusWanted = true;
    }
  }

  function choice(one, text) {
    const button = made(choices, "button", text);
    button.type = "button";
    button.addEventListener("click", () => send(one.move));
  }

  function complain(text) {
    problem.textContent = text || "";
    problem.hidden = !text;
  }

  // Many cells are one stop of the Tab key; the arrow keys go from one to another.

  function roving() {
    const buttons = [...layer.children];
    if (buttons.length > 12) buttons.forEach((button, at) => { button.tabIndex = at ? -1 : 0; });
  }

  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  function nearest(from, [right, down]) {
    const [, x, y] = board.cells[from];
    let best = null, least = Infinity;
    for (const button of layer.children) {
      const [, otherX, otherY] = board.cells[button.dataset.cell];
      const along = (otherX - x) * right + (otherY - y) * down;
      const across = Math.abs((otherX - x) * down) + Math.abs((otherY - y) * right);
      if (along > 1 && along + 3 * across < least) [best, least] = [button, along + 3 * across];
    }
    return best;
  }

  layer.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape" && selected !== null) {
      [selected, offered] = [null, []];
      render();
    }
    const direction = ARROWS[event.key], own = event.target.closest("button");
    if (!direction || !own) return;
    event.preventDefault();
    const next = nearest(own.dataset.cell, direction);
    if (!next) return;
    if (own.tabIndex === 0 && layer.children.length > 12) [own.tabIndex, next.tabIndex] = [-1, 0];
    next.focus();
  });

  layer.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const cell = Number(button.dataset.cell);
    offered = [];
    if (selected === null) {
      const starting = state.legal.filter((one) => opening(one).includes(cell));
      const direct = starting.filter((one) => !target(one).length);
      if (direct.length === 1 && starting.length === 1) send(direct[0].move);
      else if (starting.every((one) => target(one).length)) {
        selected = cell;
        render();
      } else offer(starting);
    } else if (cell === selected) {
      selected = null;
      render();
    } else {
      const fitting = candidates().filter((one) => target(one).includes(cell));
      if (fitting.length === 1) send(fitting[0].move);
      else offer(fitting);
    }
  });

  function offer(moves) { // several moves fit: by their texts
    offered = moves;
    render();
    choices.firstElementChild.focus();
  }

  // Requests to the server.

  async function post(what, fields) {
    sending = true;
    refusal = "";
    [selected, offered] = [null, []];
    render();
    let failure = "The server did not answer. Try again.", news = null;
    try {
      const response = await fetch(`${base}/${what}`, {
        method: "POST", headers: { "X-CSRF": page.dataset.csrf, Accept: "application/json" },
        body: new URLSearchParams({ after: plies.length, revision: state.revision, ...fields }),
      });
      const answer = await response.json();
      if (response.ok) [news, failure] = [answer, ""];
      else failure = answer.error;
    } catch {
      // No answer, or none that can be read.
    }
    sending = false;
    refusal = failure;
    if (news) take(news);
    if (!busy) render();
    if (failure) {
      complain(failure);
      stream.open(); // the position may be another one by now
    }
  }

  const send = (move) => post("move", { ply: plies.length, move });

  for (const form of page.querySelectorAll("[data-play-act]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!sending) post(form.getAttribute("action").split("/").pop(), {});
    });
  }

  const copy = byId("play-copy");
  if (copy) {
    copy.addEventListener("click", async () => {
      byId("play-link").select();
      try {
        await navigator.clipboard.writeText(byId("play-link").value);
        copy.textContent = "Copied";
      } catch {
        copy.textContent = "Copy the marked text";
      }
    });
  }

  // The stream of states.

  const stream = eventStream({
    address: () => `${base}/events?after=${plies.length}&revision=${state.revision}`,
    isOver: () => state.over,
    retryMs: 3000, // a person waits
    listeners: {
      state: (event) => { // the browser repeats its first request after a break: plies that come twice do no harm
        const news = JSON.parse(event.data);
        take(news);
        if (news.over) stream.close();
      },
    },
  });

  plies = first.plies.slice();
  rebuild();
  say(Math.max(0, plies.length - 1));
  render();
  centre();
  stream.open();
})();
