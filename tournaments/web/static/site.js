"use strict";
// Moments in the reader's own time; the server writes them in UTC, which stays as the tooltip.
for (const element of document.querySelectorAll("time[datetime]")) {
  const at = new Date(element.dateTime);
  if (Number.isNaN(at.valueOf())) continue;
  element.title = element.textContent;
  element.textContent = at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}
// Buttons that cannot be undone ask first.
for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.confirm)) event.preventDefault();
  });
}
