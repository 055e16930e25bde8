// A page's stream of events from the server, for other scripts.  A browser has few connections to one server, so
// that the stream of a hidden page is closed, and another one is opened when the page is shown again.
"use strict";

// ``address`` is a function that returns the stream's address, and ``listeners`` has a function for each type of
// event.  ``isOver`` returns true when no further stream is to be opened.  After an answer that is an error, another
// stream is opened after ``retryMs`` to twice that time, so that not all readers come back in the same moment.
// ``onOpen`` and ``onClose`` are called before a stream is opened, and whenever it is closed.
function eventStream({ address, listeners, isOver = () => false, retryMs = 10000, onOpen = () => {}, onClose = () => {} }) {
  let source = null, again = 0;

  function close() {
    clearTimeout(again);
    if (source) source.close();
    source = null;
    onClose();
  }

  function open() {
    close();
    if (isOver() || document.hidden) return;
    onOpen();
    source = new EventSource(address());
    for (const [type, listener] of Object.entries(listeners)) source.addEventListener(type, listener);
    source.addEventListener("error", () => {
      // After a break the browser repeats its request by itself, but not after an answer that is an error.
      if (source && source.readyState === EventSource.CLOSED) again = setTimeout(open, retryMs * (1 + Math.random()));
    });
  }

  document.addEventListener("visibilitychange", open);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  return { open, close };
}
