"use strict";
// Moments in the reader's own time; the server writes them in UTC, which stays as the tooltip.
for (const element of document.querySelectorAll("time[datetime]")) {
  const at = new Date(element.dateTime);
  if (Number.isNaN(at.valueOf())) continue;
  element.title = element.textContent;
  element.textContent = at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}
// The document has the listener: now_playing.js replaces forms by copies, which have no listeners.
const AGAIN_MS = 30000; // the answer to a form should have come by then
let sentAt = new WeakMap(); // of each form[data-once]
document.addEventListener("submit", (event) => {
  const form = event.target;
  // Buttons that cannot be undone ask first.
  if (form.matches("[data-confirm]") && !window.confirm(form.dataset.confirm)) event.preventDefault();
  // A second click would lose the answer to the first, which has links that are shown once.
  if (event.defaultPrevented || !form.matches("[data-once]")) return;
  if (performance.now() - sentAt.get(form) < AGAIN_MS) event.preventDefault();
  else sentAt.set(form, performance.now());
});
addEventListener("pageshow", () => { sentAt = new WeakMap(); }); // back from the answer
// Time until a moment, or since, as the server writes it: the same words, kept up to date.
function durationText(seconds) {
  const units = [[Math.floor(seconds / 86400), "day"], [Math.floor(seconds / 3600) % 24, "hour"],
    [Math.floor(seconds / 60) % 60, "minute"]];
  const first = units.findIndex(([count]) => count > 0);
  if (first < 0) return "less than a minute";
  return units.slice(first, first + 2).filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}${count === 1 ? "" : "s"}`).join(" ");
}
function countDown() {
  for (const element of document.querySelectorAll("[data-until]")) {
    const left = Math.trunc((Date.parse(element.dataset.until) - Date.now()) / 1000);
    if (Number.isNaN(left)) continue;
    const text = durationText(Math.abs(left));
    const words = left >= 0 ? `in ${text}` : `${text} ago`;
    if (element.textContent !== words) element.textContent = words;
  }
}
if (document.querySelector("[data-until]")) {
  countDown();
  setInterval(countDown, 10000);
}
