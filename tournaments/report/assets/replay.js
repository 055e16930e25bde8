// The replay of one game.  Reads what the page holds in #replay-data; knows no game's rules.
// Classic script, no network: it must work from the file system.  Texts of others only ever become
// textContent.
"use strict";
(() => {
  const source = document.getElementById("replay-data");
  const root = document.getElementById("replay");
  if (!source || !root) return;
  const data = JSON.parse(source.textContent);
  const { board, players, plies } = data;
  const last = plies.length;
  const SVG = "http://www.w3.org/2000/svg";
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const find = (selector) => root.querySelector(selector);

  function drawn(parent, tag, attributes, text) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return parent.appendChild(made);
  }

  function worded(parent, tag, text, look) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (look) made.className = look;
    return parent.appendChild(made);
  }

  // What lies where, after each ply: contents[0] at the start.  A ply that could not be replayed repeats
  // the one before it.

  const contents = [board.contents];
  const said = [data.start];
  for (const ply of plies) {
    const after = contents[contents.length - 1].slice();
    const changes = ply.changes || [];
    for (let at = 0; at < changes.length; at += 2) after[changes[at]] = changes[at + 1];
    contents.push(after);
    said.push(ply.seats ? ply : said[said.length - 1]);
  }

  // The board.

  const picture = find(".replay-scene svg");
  picture.querySelector("title").remove(); // it would follow the mouse; aria-label says what is there
  const marks = drawn(picture, "g", {});
  const groups = board.cells.map((_, cell) => drawn(picture, "g", { "data-cell": cell }));
  const moving = drawn(picture, "g", {});
  let lying = []; // what the board shows now

  const cellAt = (cell) => {
    const [name, x, y, shape, numberX, numberY] = board.cells[cell];
    const [width, height, rounding, radius, look, spots] = board.shapes[shape];
    return { name, x, y, width, height, rounding, radius, look, spots, numberX, numberY };
  };
  const cells = board.cells.map((_, cell) => cellAt(cell));

  function put(cell, content) {
    lying[cell] = content;
    const place = cells[cell], group = groups[cell];
    group.replaceChildren();
    group.setAttribute("data-content", content === null ? "" : content);
    const counts = typeof content === "number";
    const look = counts ? place.look : content === null ? "" : board.pieces[content][0];
    const shown = counts ? Math.min(content, place.spots.length) : content === null ? 0 : 1;
    for (const [x, y] of place.spots.slice(0, shown)) {
      drawn(group, "circle", { class: look, cx: place.x + x, cy: place.y + y, r: place.radius });
    }
    if (counts && place.numberX !== null) {
      const size = board.number_size;
      drawn(group, "text", {
        class: content ? "number" : "zero", x: place.numberX, y: place.numberY + 0.35 * size,
        "font-size": size, "font-weight": 600, "text-anchor": "middle",
      }, content);
    }
  }

  function show(ply) {
    moving.replaceChildren();
    contents[ply].forEach((content, cell) => {
      if (lying[cell] !== content) put(cell, content);
    });
    root.removeAttribute("data-moving");
  }

  function mark(ply) {
    marks.replaceChildren();
    const phases = (ply && plies[ply - 1].phases) || [];
    const left = new Set(phases.length ? phases[0].map((one) => one[0]) : []);
    const entered = new Set(phases.flat().map((one) => one[1]));
    const ends = new Set(phases.length ? phases[phases.length - 1].map((one) => one[1]) : []);
    for (const cell of new Set([...left, ...entered])) {
      if (cell < 0) continue;
      const place = cells[cell];
      const ring = drawn(marks, "rect", {
        class: "mark", x: place.x - place.width / 2, y: place.y - place.height / 2,
        width: place.width, height: place.height, rx: place.rounding,
      });
      // Several things side by side in one row begin at their first spot, not in the middle.
      if (place.look && place.numberX === null) ring.remove();
      else if (left.has(cell) && !ends.has(cell)) ring.setAttribute("stroke-dasharray", "4.5 4");
      else if (!ends.has(cell)) ring.classList.add("passing");
    }
  }

  function describe(ply) {
    const found = [];
    contents[ply].forEach((content, cell) => {
      if (content !== null) {
        found.push(`${cells[cell].name}: ${typeof content === "number" ? content : board.pieces[content][1]}`);
      }
    });
    picture.setAttribute("aria-label", `Position after move ${ply}. ${found.join("; ")}`);
  }

  // Animation: the transfers of a phase at the same time, phase after phase.

  const PHASE_MS = { most: 420, all: 1700, least: 45 };
  let frame = 0;

  function take(origin, what) {
    const content = lying[origin];
    put(origin, typeof content === "number" ? content - (typeof what === "number" ? what : 1) : null);
  }

  function give(target, what) {
    const content = lying[target];
    put(target, typeof content === "number" ? content + (typeof what === "number" ? what : 1) : what);
  }

  // Discs on their way: [circle, from, to], each end as [x, y, radius].
  function launch(phase) {
    const travellers = [];
    const arrived = new Map(); // cell -> what of this phase goes there already
    for (const [origin, target, what] of phase) {
      const number = typeof what === "number" ? what : 1;
      const from = cells[origin] || cells[target], to = cells[target] || cells[origin];
      const look = typeof what === "number" ? from.look : board.pieces[what][0];
      const leaving = typeof lying[origin] === "number" ? lying[origin] - number : 0;
      const arriving = (typeof lying[target] === "number" ? lying[target] : 0) + (arrived.get(target) || 0);
      arrived.set(target, (arrived.get(target) || 0) + number);
      const spot = (place, index) => {
        const [x, y] = place.spots[Math.min(index, place.spots.length - 1)];
        return [place.x + x, place.y + y, place.radius];
      };
      for (let one = 0; one < Math.min(number, from.spots.length); one += 1) {
        const start = spot(from, leaving + one), end = spot(to, arriving + one);
        if (!cells[origin]) start[2] = 0;
        if (!cells[target]) end[2] = 0;
        travellers.push([drawn(moving, "circle", { class: look }), start, end]);
      }
    }
    return travellers;
  }

  function animate(ply, whenDone) {
    const phases = plies[ply - 1].phases;
    const length = Math.max(PHASE_MS.least, Math.min(PHASE_MS.most, PHASE_MS.all / phases.length)) / speed();
    let index = -1, began = 0, travellers = [];
    root.setAttribute("data-moving", ply);
    const step = (now) => {
      if (index < 0 || now - began >= length) {
        if (index >= 0) for (const [, target, what] of phases[index]) if (target >= 0) give(target, what);
        moving.replaceChildren();
        index += 1;
        if (index === phases.length) {
          frame = 0;
          show(ply); // whatever the transfers came to: the position is what counts
          whenDone();
          return;
        }
        began = now;
        travellers = launch(phases[index]);
        for (const [origin, , what] of phases[index]) if (origin >= 0) take(origin, what);
      }
      const part = Math.min(1, (now - began) / length), eased = part * part * (3 - 2 * part);
      for (const [disc, from, to] of travellers) {
        const [x, y, radius] = from.map((start, axis) => start + (to[axis] - start) * eased);
        disc.setAttribute("cx", x);
        disc.setAttribute("cy", y);
        disc.setAttribute("r", radius);
      }
      frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
  }

  // What is said beside the board.

  const rows = [...document.querySelectorAll(".replay-moves tbody tr")];
  const movesBox = document.querySelector(".replay-moves");
  const wire = [...document.querySelectorAll(".replay-conversation li")];
  const wireBox = document.querySelector(".replay-wire");
  const slider = find(".replay-slider"), link = find(".replay-link"), words = find(".replay-said");
  const speed = () => Number(find(".replay-speed").value);

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
    rows.forEach((row, at) => {
      row.classList.toggle("now", at + 1 === ply);
      if (at + 1 === ply) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    });
    if (ply) into(movesBox, rows[ply - 1]);
    else movesBox.scrollTop = 0;
    const heard = ply ? plies[ply - 1].wire : data.start.wire, before = ply > 1 ? plies[ply - 2].wire : 0;
    wire.forEach((line, at) => {
      line.classList.toggle("past", at < heard);
      line.classList.toggle("now", ply > 0 && at < heard && at >= Math.max(before, data.start.wire));
    });
    if (heard) into(wireBox, wire[heard - 1]);
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
  const longest = Math.max(1, ...plies.map((ply) => ply.charged_us || 0));
  chart.setAttribute("viewBox", `0 0 ${Math.max(1, last)} ${HIGH}`);
  const bars = plies.map((ply, at) => {
    const high = Math.max(1, HIGH * (ply.charged_us || 0) / longest);
    const size = { x: at + 0.1, y: HIGH - high, width: 0.8, height: high };
    return drawn(chart, "rect", { class: `p${ply.player}`, ...size });
  });

  // Going from ply to ply.

  let current = 0, playing = false, timer = 0, addressTimer = 0;
  const PAUSE_MS = { moving: 450, calm: 1000, address: 150 };

  function halt() {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = timer = 0;
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
    addressTimer = setTimeout(address, PAUSE_MS.address);
    if (stepped && (plies[current - 1].phases || []).length) {
      marks.replaceChildren();
      animate(current, () => { mark(current); follow(); });
    } else {
      show(current);
      mark(current);
      follow();
    }
  }

  function follow() { // the next move, if the game is being played
    if (!playing) return;
    if (current === last) play(false);
    else {
      const pause = calm.matches ? PAUSE_MS.calm : PAUSE_MS.moving;
      timer = setTimeout(() => go(current + 1, { animated: true }), pause / speed());
    }
  }

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
    const wanted = `#ply=${current}`;
    if (location.hash === wanted || (!current && !location.hash)) return;
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
    if (what !== "play" && playing) play(false);
    DO[what]();
  }

  function jump(ply) {
    if (playing) play(false);
    go(ply);
  }

  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (button) act(button.dataset.do);
  });
  // What is folded away has no place to scroll to.
  wireBox.parentElement.addEventListener("toggle", () => tell(current));
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
  go(fromAddress() ?? 0);
})();
