"use strict";
// The list of games: show those that all filters agree on.
const form = document.getElementById("filter");
if (form) {
  const rows = [...document.querySelectorAll("#games tbody tr")].map((row) => ({
    row,
    bots: row.dataset.b.split(" "),
    result: row.dataset.r,
    aside: row.classList.contains("aside"),
    end: row.lastElementChild.textContent.trim(),
    fault: row.lastElementChild.classList.contains("fault"),
  }));
  const show = () => {
    const { bot, result, end } = form.elements;
    let shown = 0;
    for (const one of rows) {
      const fits =
        (!bot.value || one.bots.includes(bot.value)) &&
        (!result.value || (result.value === "a" ? one.aside : one.result === result.value)) &&
        (!end.value || (end.value === "*" ? one.fault : one.end === end.value));
      one.row.hidden = !fits;
      shown += fits;
    }
    const all = `${rows.length} game${rows.length === 1 ? "" : "s"}`;
    form.querySelector("output").textContent = shown === rows.length ? all : `${shown} of ${all}`;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  show(); // a browser may have kept what was chosen before
}

// The cross table: mark the head of the column that is pointed at; rows are marked by the style sheet.
// The document has the listeners: on the site, now_playing.js replaces tables by copies, which have none.
const markColumn = (cell) => {
  for (const marked of document.querySelectorAll(".cross .column")) marked.classList.remove("column");
  cell?.closest("table").tHead.rows[0].cells[cell.cellIndex].classList.add("column");
};
document.addEventListener("pointerover", (event) => markColumn(event.target.closest(".cross tbody td")));
document.documentElement.addEventListener("pointerleave", () => markColumn(null));

// A cell of the cross table leads to the games of two bots, which may be folded.
const openTarget = () => document.querySelector("tr:target details")?.setAttribute("open", "");
openTarget();
window.addEventListener("hashchange", openTarget);
