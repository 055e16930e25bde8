// What plays now, and standings that stay up to date: for pages with [data-now-playing] or [data-refresh].
// [data-poll] says that something goes on, and after how many seconds to look again.
"use strict";
(() => {
  const list = document.querySelector("[data-now-playing]");
  if (!list && !document.querySelector("[data-refresh]")) return;
  const SPREAD_MS = 10000; // not all readers ask for the new standings in the same moment
  const PRESSED_MS = 1000; // until the next try, when a button is being pressed: a copy would miss the click
  let refreshing = 0, polling = 0;
  let known = null; // the number of the standings that the page shows

  function bot(parent, name) {
    const made = parent.appendChild(document.createElement("bdi"));
    made.textContent = name;
  }

  function show({ games, more }) {
    if (!list) return;
    const items = games.map((game) => {
      const item = document.createElement("li"), link = item.appendChild(document.createElement("a"));
      link.href = game.href;
      bot(link, game.first);
      link.append(" ");
      const versus = link.appendChild(document.createElement("span"));
      versus.className = "soft";
      versus.textContent = "vs";
      link.append(" ");
      bot(link, game.second);
      item.append(" ");
      const title = item.appendChild(document.createElement("small"));
      title.textContent = game.title;
      return item;
    });
    if (more || !items.length) {
      const item = document.createElement("li");
      item.textContent = items.length ? `and ${more} more` : "No game is being played just now.";
      item.className = "soft";
      items.push(item);
    }
    const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    list.replaceChildren(...items);
    if (focused) [...list.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  }

  // Return the element of a part's fresh copy that stands for one of the part; null if there is none.
  // A bot's link can be in several tables, which have labels.
  function twin(element, part, copy) {
    const table = element.parentElement.closest("[aria-label]");
    if (table && table !== part && part.contains(table)) {
      return twin(element, table, twin(table, part, copy) ?? copy);
    }
    const nameOf = (one) => one.getAttribute("href") ?? one.getAttribute("aria-label") ?? one.textContent;
    const isAlike = (one) => nameOf(one) === nameOf(element);
    const alike = (whole) => [...whole.querySelectorAll(element.localName)].filter(isAlike);
    const found = alike(copy);
    return found[alike(part).indexOf(element)] ?? found[0] ?? null;
  }

  // Replace a part by its fresh copy; what a reader has opened, the focus and the scroll positions of wide tables stay.
  function replacePart(part, copy) {
    for (const summary of part.querySelectorAll("details > summary")) {
      const other = twin(summary, part, copy);
      if (other) other.parentElement.open = summary.parentElement.open;
    }
    if (part.isEqualNode(copy)) return;
    const focused = part.contains(document.activeElement) ? twin(document.activeElement, part, copy) : null;
    const scrolled = [...part.querySelectorAll(".wide")].filter((box) => box.scrollLeft)
      .map((box) => [twin(box, part, copy), box.scrollLeft]);
    part.replaceWith(copy);
    for (const [box, left] of scrolled) if (box) box.scrollLeft = left;
    focused?.focus({ preventScroll: true });
  }

  async function refresh() {
    clearTimeout(refreshing);
    refreshing = 0;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok || answer.redirected) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-refresh]")) {
        const other = fresh.querySelector(`[data-refresh="${CSS.escape(part.dataset.refresh)}"]`);
        if (!other) continue;
        if (!part.matches(":active")) replacePart(part, other);
        else if (!refreshing) refreshing = setTimeout(refresh, PRESSED_MS);
      }
    } catch {
      // The next change brings another try.
    }
  }

  function poll(wentOn) {
    const going = document.querySelector("[data-poll]");
    if (!going && !wentOn) return; // once more after the end: a table may be a moment behind
    const seconds = going ? Number(going.dataset.poll) : 2;
    polling = setTimeout(() => refresh().then(() => poll(going !== null)), 1000 * seconds * (0.8 + 0.4 * Math.random()));
  }

  const stream = eventStream({
    address: () => (known === null ? "/events" : `/events?standings=${known}`),
    onOpen: () => poll(false),
    onClose: () => clearTimeout(polling),
    listeners: {
      playing: (event) => {
        known = event.lastEventId;
        show(JSON.parse(event.data));
      },
      standings: (event) => {
        known = event.lastEventId;
        if (!refreshing) refreshing = setTimeout(refresh, SPREAD_MS * Math.random());
      },
    },
  });

  stream.open();
})();
