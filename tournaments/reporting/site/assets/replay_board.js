// The board of a replay: what lies where after each ply, and what moves carry from cell to cell.  For replay.js.
"use strict";

function replayDrawn(parent, tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return parent.appendChild(made);
}

// Draws in what #replay has for it.  ``speed`` is a function; plies that are added to ``data.plies`` are to be laid.
function replayBoard(root, data, speed) {
  const { board, plies } = data;
  const drawn = replayDrawn;
  const stage = root.closest(".replay-stage");
  stage.style.setProperty("--board-width", stage.dataset.boardWidth);
  stage.style.setProperty("--board-ratio", stage.dataset.boardRatio);

  // What lies where, after each ply: contents[0] at the start.  A ply that could not be replayed repeats
  // the one before it.

  const contents = [board.contents];
  const said = [data.start];
  const lay = (ply) => {
    const after = contents[contents.length - 1].slice();
    const changes = ply.changes || [];
    for (let at = 0; at < changes.length; at += 2) after[changes[at]] = changes[at + 1];
    contents.push(after);
    said.push(ply.seats ? ply : said[said.length - 1]);
  };
  plies.forEach(lay);

  // The board.

  const picture = root.querySelector(".replay-scene svg");
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

  function halt() {
    cancelAnimationFrame(frame);
    frame = 0;
  }

  const contentOf = (cell) => lying[cell];

  return { said, contentOf, lay, show, mark, describe, animate, halt, clearMarks: () => marks.replaceChildren() };
}
