// "Play this position" beside a replay: the link follows the replay to each position.
"use strict";
(() => {
  const link = document.getElementById("play-position"), root = document.getElementById("replay");
  const source = document.getElementById("replay-data");
  if (!link || !root || !source) return;
  const { plies } = JSON.parse(source.textContent);
  const moves = plies.filter((ply) => !ply.fault).map((ply) => ply.move);
  function follow() {
    const ply = Math.min(Number(root.dataset.ply || 0), Number(link.dataset.most));
    const address = new URL(link.href, location.href);
    address.searchParams.set("from", [link.dataset.opening, ...moves.slice(0, ply)].join(" ").trim());
    link.href = address.href;
  }
  new MutationObserver(follow).observe(root, { attributes: true, attributeFilter: ["data-ply"] });
  follow();
})();
