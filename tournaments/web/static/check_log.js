"use strict";
// The log of a check as it comes; when the check is over, the page is loaded again and has its outcome.
(() => {
  const log = document.getElementById("check-log");
  if (!log) return;
  const RELOAD_MS = 400;
  let known = Number(log.dataset.after);

  const stream = eventStream({
    address: () => `${log.dataset.events}?after=${known}`,
    listeners: {
      line: (event) => {
        const number = Number(event.lastEventId);
        if (number <= known) return;
        known = number;
        if (log.dataset.checking) { // the version was waiting for its check when the page was made
          const state = document.getElementById("state");
          state.className = "state checking";
          state.textContent = "checking";
          document.getElementById("verdict").textContent = log.dataset.checking;
          delete log.dataset.checking;
        }
        const follows = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
        log.append(`${log.textContent ? "\n" : ""}${JSON.parse(event.data)}`);
        if (follows) log.scrollTop = log.scrollHeight;
      },
      over: () => {
        stream.close();
        setTimeout(() => location.reload(), RELOAD_MS);
      },
    },
  });

  log.scrollTop = log.scrollHeight;
  stream.open();
})();
