// A board in a frame of another site: goes on to the next game of its competition, if there is one.
"use strict";
(() => {
  const GAME_S = 5; // for which the verdict of a game stays
  const IDLE_S = 30; // between two looks for another game
  const page = document.querySelector("[data-follows]");

  async function look() {
    try {
      const answer = document.hidden ? null : await fetch(location.pathname, { headers: { Accept: "text/html" } });
      const other = answer && new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-follows]");
      if (other && other.dataset.follows !== page.dataset.follows) {
        location.replace(location.pathname); // without the move in the address
        return;
      }
    } catch {
      // The next look brings another try.
    }
    wait(IDLE_S);
  }

  function wait(seconds) { // not all readers ask in the same moment
    setTimeout(look, 1000 * seconds * (0.8 + 0.4 * Math.random()));
  }

  if (page.dataset.liveEvents) page.addEventListener("live-over", () => wait(GAME_S));
  else wait(IDLE_S);
})();
