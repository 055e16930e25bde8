// The replay of one game; replay_board.js has its board.  Reads what the page holds in #replay-data; knows no game's rules.
// Classic script, no network: it must work from the file system.  Texts of others only ever become textContent.
// A page of a game that goes on sends "replay-news" to #replay, with further plies; their rows are there by then.
"use strict";
(() => {
  const source = document.getElementById("replay-data");
  const root = document.getElementById("replay");
  if (!source || !root) return;
  const data = JSON.parse(source.textContent);
  const { board, players, plies } = data;
  let last = plies.length;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const find = (selector) => root.querySelector(selector);
  const speed = () => Number(find(".replay-speed").value);
  const stage = replayBoard(root, data, speed);
  const { said, show, mark, describe } = stage;

  function worded(parent, tag, text, look) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (look) made.className = look;
    return parent.appendChild(made);
  }

  // What is said beside the board.

  let rows = [...document.querySelectorAll(".replay-moves tbody tr")];
  const movesBox = document.querySelector(".replay-moves");
  const wire = [...document.querySelectorAll(".replay-conversation li")];
  const wireBox = document.querySelector(".replay-wire");
  const slider = find(".replay-slider"), link = find(".replay-link"), words = find(".replay-said");

  function caption(ply) {
    for (const line of root.querySelectorAll(".replay-seat")) {
      const player = said[ply].seats.findIndex(([seat]) => seat === board.seats[line.dataset.place]);
      const [seat, note, leads] = said[ply].seats[player];
      line.replaceChildren();
      line.classList.toggle("leads", Boolean(leads));
      worded(line, "bdi", players[player], `replay-player p${player}`);
      worded(line, "span", seat);
      worded(line, "span", note, "replay-seat-note");
      worded(line, "span", `${said[ply].tallies[player]} ${board.tally}`, "replay-tally");
    }
  }

  function say(ply) {
    if (!ply) return "Start of the game";
    const { player, move, fault } = plies[ply - 1];
    if (fault) return data.sentence;
    const seat = said[ply - 1].seats[player][0]; // of before the move: a swap changes it
    return `Move ${ply} of ${last}: ${players[player]} (${seat}) plays ${move}`;
  }

  function into(box, item) { // scrolls within the box alone, never the page
    const inner = item.getBoundingClientRect(), outer = box.getBoundingClientRect();
    const head = box.querySelector("thead");
    const top = outer.top + (head ? head.offsetHeight : 0);
    if (inner.top < top) box.scrollTop -= top - inner.top;
    else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom;
  }

  function tell(ply) {
    const text = say(ply);
    root.setAttribute("data-ply", ply);
    caption(ply);
    words.setAttribute("aria-live", timer || playing ? "off" : "polite");
    words.textContent = text;
    slider.value = ply;
    slider.setAttribute("aria-valuetext", text);
    link.href = `#ply=${ply}`;
    link.textContent = "Copy link";
    point(ply);
    if (ply) into(movesBox, rows[ply - 1]);
    else movesBox.scrollTop = 0;
    const heard = ply ? plies[ply - 1].wire : data.start.wire, before = ply > 1 ? plies[ply - 2].wire : 0;
    wire.forEach((line, at) => {
      line.classList.toggle("past", at < heard);
      line.classList.toggle("now", ply > 0 && at < heard && at >= Math.max(before, data.start.wire));
    });
    if (heard) into(wireBox, wire[heard - 1]);
  }

  function point(ply) { // at the row and the bar of a ply
    rows.forEach((row, at) => {
      row.classList.toggle("now", at + 1 === ply);
      if (at + 1 === ply) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    });
    bars.forEach((bar, at) => bar.classList.toggle("now", at + 1 === ply));
    for (const button of root.querySelectorAll("[data-do]")) {
      const does = button.dataset.do;
      const useless = (does === "first" || does === "previous") ? ply === 0 : does !== "play" && ply === last;
      button.setAttribute("aria-disabled", useless);
    }
  }

  // How long each move took.

  const chart = find(".replay-times svg");
  const HIGH = 40;
  const chartTimes = () => {
    const longest = Math.max(1, ...plies.map((ply) => ply.charged_us || 0));
    chart.replaceChildren();
    chart.setAttribute("viewBox", `0 0 ${Math.max(1, last)} ${HIGH}`);
    return plies.map((ply, at) => {
      const high = Math.max(1, HIGH * (ply.charged_us || 0) / longest);
      const size = { x: at + 0.1, y: HIGH - high, width: 0.8, height: high };
      return replayDrawn(chart, "rect", { class: `p${ply.player}`, ...size });
    });
  };
  let bars = chartTimes();

  // Going from ply to ply.

  let current = 0, playing = false, chasing = false, timer = 0, addressTimer = 0;
  const PAUSE_MS = { moving: 450, calm: 1000, address: 150, chasing: 100 };
  const FAR_BEHIND = 3; // plies: of a game that goes on so fast, not each one is animated

  function halt() {
    stage.halt();
    clearTimeout(timer);
    timer = 0;
    show(current);
  }

  function go(ply, { animated = false } = {}) {
    halt();
    const target = Math.max(0, Math.min(last, ply));
    const stepped = animated && target === current + 1 && !calm.matches;
    current = target;
    tell(current);
    describe(current);
    // Browsers limit how often a page may change its address.
    clearTimeout(addressTimer);
    const before = location.hash; // whoever goes elsewhere in the meantime stays there
    addressTimer = setTimeout(() => { if (location.hash === before) address(); }, PAUSE_MS.address);
    if (stepped && (plies[current - 1].phases || []).length) {
      stage.clearMarks();
      stage.animate(current, () => { mark(current); follow(); });
    } else {
      show(current);
      mark(current);
      follow();
    }
  }

  function follow() { // the next move, if the game is being played
    if (chasing) {
      if (current === last) chasing = false;
      else timer = setTimeout(chase, PAUSE_MS.chasing);
    } else if (!playing) return;
    else if (current === last) play(false);
    else {
      const pause = calm.matches ? PAUSE_MS.calm : PAUSE_MS.moving;
      timer = setTimeout(() => go(current + 1, { animated: true }), pause / speed());
    }
  }

  function chase() { // the end of a game that goes on
    chasing = true;
    go(last - current > FAR_BEHIND ? last : current + 1, { animated: true });
  }

  root.addEventListener("replay-news", ({ detail }) => {
    const watches = current === last && !playing;
    plies.push(...detail);
    detail.forEach(stage.lay);
    last = plies.length;
    rows = [...document.querySelectorAll(".replay-moves tbody tr")];
    bars = chartTimes();
    slider.max = last;
    if (chasing) return; // it goes on to the new end
    if (watches) chase();
    else point(current); // whoever looks at an earlier position is left in peace
  });

  function play(on) {
    playing = on;
    root.classList.toggle("playing", on);
    const button = find("[data-do=play]"), label = `${on ? "Pause" : "Play"} (Space)`;
    button.title = label;
    button.setAttribute("aria-label", label);
    if (!on) clearTimeout(timer);
    else go(current === last ? 0 : current + 1, { animated: true });
  }

  function address() {
    const newest = data.live && current === last; // who loads the page again wants to see the newest then
    const wanted = newest ? location.pathname : `#ply=${current}`;
    if (location.hash === wanted || ((newest || !current) && !location.hash)) return;
    try {
      history.replaceState(null, "", wanted);
    } catch {
      // An address that cannot be changed is no reason to stop; the link beside the board is right.
    }
  }

  function fromAddress() {
    const match = /^#ply=(\d{1,9})$/.exec(location.hash);
    return match ? Number(match[1]) : null;
  }

  const DO = {
    first: () => go(0), previous: () => go(current - 1), last: () => go(last),
    next: () => go(current + 1, { animated: true }), play: () => play(!playing),
  };
  const KEYS = { Home: "first", End: "last", ArrowLeft: "previous", ArrowRight: "next", " ": "play" };

  function act(what) {
    chasing = false;
    if (what !== "play" && playing) play(false);
    DO[what]();
  }

  function jump(ply) {
    chasing = false;
    if (playing) play(false);
    go(ply);
  }

  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (button) act(button.dataset.do);
  });
  // What is folded away has no place to scroll to.
  wireBox?.parentElement.addEventListener("toggle", () => tell(current));
  slider.addEventListener("input", () => jump(Number(slider.value)));
  chart.addEventListener("click", (event) => {
    const box = chart.getBoundingClientRect();
    jump(1 + Math.floor((event.clientX - box.left) / box.width * last));
  });
  movesBox.addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    jump(rows.indexOf(row) + 1);
  });
  document.addEventListener("keydown", (event) => {
    const what = KEYS[event.key];
    if (!what || event.defaultPrevented) return;
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const taken = what === "play" ? "input,select,textarea,button,summary,a,[contenteditable]"
      : "input,select,textarea,[contenteditable],.replay-wire";
    if (event.target.closest && event.target.closest(taken)) return;
    event.preventDefault();
    act(what);
  });
  addEventListener("hashchange", () => {
    const ply = fromAddress();
    if (ply !== null) jump(ply);
  });
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    address();
    try {
      await navigator.clipboard.writeText(new URL(`#ply=${current}`, location.href).href);
      link.textContent = "Copied";
    } catch {
      link.textContent = "Copy it from the address bar";
    }
  });

  document.getElementById("replay-still").hidden = true;
  root.hidden = false;
  go(fromAddress() ?? (data.live ? last : 0));
})();
