// The page of one game of a large report.  The file with its data calls kalarenaGames; see packed_replay in replay_page.py.
// Classic script, no network: it must work from the file system.  Texts of others only ever become textContent; the
// body was escaped when the report was made.
"use strict";
const version = new URL(document.currentScript.src).search; // for the other scripts, too: browsers keep old ones
async function kalarenaGames(packed) {
  const bytes = Uint8Array.from(atob(packed), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const { boards, phases, seats, keys, bodies, replays } = JSON.parse(await new Response(stream).text());
  const at = keys.indexOf(document.body.dataset.game);
  const game = replays[at], board = game.board === null ? null : boards[game.board];
  document.body.innerHTML = bodies[at];

  const plies = game.plies.player.map((_, number) => {
    const ply = {};
    for (const [name, column] of Object.entries(game.plies)) {
      if (column[number] !== null || name.endsWith("_us")) ply[name] = column[number];
    }
    if (ply.phases) ply.phases = ply.phases.map((one) => phases[one]);
    if (ply.seats !== undefined) ply.seats = seats[ply.seats];
    return ply;
  });

  // The phases of a ply carry things from cell to cell, as replay_board.js shows them.
  const lying = board === null ? [] : board.contents.slice();
  for (const ply of plies) {
    if (!ply.phases) continue;
    const touched = new Set();
    for (const phase of ply.phases) {
      for (const [origin, , what] of phase) {
        if (origin < 0) continue;
        lying[origin] = typeof lying[origin] === "number" ? lying[origin] - (typeof what === "number" ? what : 1) : null;
        touched.add(origin);
      }
      for (const [, target, what] of phase) {
        if (target < 0) continue;
        lying[target] = typeof lying[target] === "number" ? lying[target] + (typeof what === "number" ? what : 1) : what;
        touched.add(target);
      }
    }
    ply.changes = [...touched].flatMap((cell) => [cell, lying[cell]]);
  }

  const made = (parent, tag, text, look) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (look) element.className = look;
    return parent.appendChild(element);
  };
  const known = (player) => player === 0 || player === 1;
  const name = (parent, player) => {
    if (known(player)) made(parent, "bdi", game.players[player]);
    else parent.append("?");
  };
  const time = (us) => {
    if (!us) return us === null ? "" : "0 ms";
    if (us >= 1e6) return `${(us / 1e6).toFixed(2)} s`;
    return us >= 1e4 ? `${(us / 1e3).toFixed(1)} ms` : `${(us / 1e3).toFixed(2)} ms`;
  };

  const rows = document.querySelector(".replay-moves tbody");
  plies.forEach((ply, index) => {
    const row = made(rows, "tr");
    made(made(row, "td"), "a", index + 1).href = `#ply=${index + 1}`;
    name(made(row, "td", "", `replay-player p${known(ply.player) ? ply.player : ""}`), ply.player);
    if (ply.fault !== undefined) {
      const cell = made(row, "td", "", "replay-fault");
      cell.colSpan = 4;
      made(cell, "strong", ply.fault);
      if (ply.move) {
        cell.append(" ");
        made(cell, "code", ply.move);
      }
      return;
    }
    made(row, "td", ply.move);
    made(row, "td", time(ply.charged_us));
    for (const us of [ply.wall_us, ply.cpu_us]) made(row, "td", time(us), "replay-more");
  });

  const wire = document.querySelector(".replay-wire");
  let now = 0;
  game.lines.forEach((text, index) => {
    const [player, isTo] = game.by[index];
    now += game.at[index];
    const line = made(wire, "li", undefined, known(player) ? `p${player}` : "p");
    made(line, "span", (now / 1000).toFixed(3));
    line.append(isTo ? " to " : " from ");
    name(line, player);
    line.append(" ");
    made(line, "code", text);
  });

  if (!board) return;
  document.querySelector(".replay-scene").innerHTML = board.svg;
  const data = made(document.querySelector(".replay-page"), "script");
  data.type = "application/json";
  data.id = "replay-data";
  data.textContent = JSON.stringify({
    board: { ...board, svg: undefined }, players: game.players, start: game.start, plies, sentence: game.sentence,
  });
  for (const file of ["replay_board.js", "replay.js"]) {
    const script = document.createElement("script");
    script.src = `../assets/${file}${version}`;
    script.async = false; // one after the other
    document.body.append(script);
  }
}
