// Shows what happens as it happens: the service says that something did, and
// the part of the page that may have changed is fetched again. Without it, the
// page works by reloading.
"use strict";

const live = document.getElementById("live");

async function refresh() {
  const answer = await fetch(location.pathname, { credentials: "omit", cache: "no-store" });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
  if (!fresh) return;
  for (const open of live.querySelectorAll("details[open]")) {
    const same = fresh.querySelector("#" + open.id);
    if (same) same.open = true;
  }
  const focus = live.contains(document.activeElement) ? document.activeElement.id : "";
  live.replaceChildren(...fresh.childNodes);
  if (focus) document.getElementById(focus)?.focus();
}

if (live) {
  let again = false, busy = false;
  const changes = new EventSource(live.dataset.changes);
  changes.onmessage = async () => {
    again = true;
    if (busy) return;
    busy = true;
    while (again) {
      again = false;
      await refresh().catch(() => {});
    }
    busy = false;
  };
}
