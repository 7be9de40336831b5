// Keeps the page up to date: it polls for the page and updates what has changed in
// place. It does not use a stream, because a browser allows only six per service, and
// a seventh tab would wait forever. Without this script the page still works with
// links, forms and reloading.
"use strict";

const live = document.getElementById("live");
const updates = document.body.hasAttribute("data-live"); // other pages only watch whether the service is there
const clock = document.getElementById("clock");
const connection = document.getElementById("connection");

// The last known time of the service's clock.
let shown = Number(clock?.dataset.now), since = performance.now();
const speed = Number(clock?.dataset.speed);
const now = () => shown + (performance.now() - since) * speed;

function pad(n) { return String(n).padStart(2, "0"); }

// left formats a remaining time.
function left(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  const hours = Math.floor(s / 3600), minutes = Math.floor(s / 60) % 60;
  return hours ? `${hours}:${pad(minutes)}:${pad(s % 60)}` : `${minutes}:${pad(s % 60)}`;
}

// The service shows the time in its own time zone.
const zone = Number(clock?.dataset.zone) * 1000;
const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
function tick() {
  if (!clock) return;
  const at = new Date(now() + zone); // whose UTC is the service's time
  set(clock, `${months[at.getUTCMonth()]} ${at.getUTCDate()} ${at.toISOString().slice(11, 19)}`);
  for (const due of document.querySelectorAll("[data-due]")) {
    const ms = Number(due.dataset.due) - now();
    set(due, ms > 0 ? `in ${left(ms)}` : "now");
  }
}
function set(node, text) { if (node.textContent !== text) node.textContent = text; }

// morph updates an element to match a fresh one, and keeps every part that is still
// there, so that focus, open details and scroll positions stay.
function morph(old, fresh) {
  if (old.hasAttribute("data-keep") || old.getAttribute("aria-busy") || old.isEqualNode(fresh)) return;
  const ours = ["open", "hidden", "data-fetched", old.matches("form") ? "data-busy" : ""];
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !ours.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name === "open" || name === "hidden" || name === "value" && old.matches("input")) continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.matches("input, select, textarea")) return;
  const byId = new Map([...old.children].filter((c) => c.id).map((c) => [c.id, c]));
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    let same = next.id ? byId.get(next.id) : at;
    if (!next.id && same?.id && same.nodeType === 1) same = null;
    if (!same || same.nodeName !== next.nodeName) {
      old.insertBefore(next.cloneNode(true), at);
      continue;
    }
    while (at && at !== same && !inFresh(at, fresh)) { const gone = at; at = at.nextSibling; gone.remove(); }
    if (at !== same) old.insertBefore(same, at);
    if (same.nodeType === 1) morph(same, next);
    else if (same.data !== next.data) same.data = next.data;
    at = same.nextSibling;
  }
  while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
}
function inFresh(node, fresh) {
  return node.id && [...fresh.children].some((c) => c.id === node.id);
}

let tag = "";

// take updates the page with an answer of the service.
async function take(answer) {
  const time = Number(answer.headers.get("Ramp-Clock"));
  if (time) { shown = time; since = performance.now(); }
  if (answer.status === 304 || !updates) return;
  const text = await answer.text();
  const page = new DOMParser().parseFromString(text, "text/html");
  const fresh = page.getElementById("live");
  if (!fresh) {
    say(page.querySelector(".problem")?.textContent.replace(/\s+/g, " ").trim() || `The service answered HTTP ${answer.status}.`);
    return;
  }
  tag = answer.headers.get("ETag") ?? "";
  document.title = page.title;
  set(document.getElementById("pace"), page.getElementById("pace").textContent);
  keepEarlier(fresh);
  morph(live, fresh);
  dress(live);
  tick();
}

function say(text) { set(connection, text); }

// Earlier entries that were fetched stay above those of the page.
function keepEarlier(fresh) {
  const held = live.querySelector("#timeline[data-fetched]"), list = fresh.querySelector("#timeline");
  if (!held || !list) return;
  const first = list.firstElementChild?.id;
  list.dataset.fetched = "";
  const kept = [];
  for (const entry of held.children) {
    if (entry.id === first) break;
    kept.push(entry.cloneNode(true));
  }
  list.prepend(...kept);
  const link = live.querySelector("#earlier"), now = fresh.querySelector("#earlier");
  if (link && now) now.replaceWith(link.cloneNode(true)); else now?.remove();
}

const pause = { seen: updates ? 700 : 2000, hidden: 5000, lost: 2000 };
let timer, busy = false, lost = false;

async function poll() {
  clearTimeout(timer);
  if (busy) return;
  busy = true;
  try {
    const answer = await fetch(updates ? location.href : "/pages/page.js", { method: updates ? "GET" : "HEAD", credentials: "same-origin", cache: "no-store",
      headers: tag ? { "If-None-Match": tag } : {}, signal: AbortSignal.timeout(10000) });
    if (lost) say("");
    lost = false;
    document.body.classList.remove("stale");
    await take(answer);
  } catch {
    lost = true;
    document.body.classList.add("stale");
    say("Connection lost; this page may be stale. Retrying…");
  }
  busy = false;
  timer = setTimeout(poll, lost ? pause.lost : document.hidden ? pause.hidden : pause.seen);
}

// A button shows at once that it was pressed.
document.addEventListener("submit", async (event) => {
  const form = event.target, button = event.submitter;
  if (form.dataset.busy) { event.preventDefault(); return; }
  if (form.id === "exchange" && !check()) { event.preventDefault(); return; }
  const inPlace = live && form.method === "post" && /\/(resend|advance|read|end)$/.test(form.action);
  const body = new URLSearchParams(new FormData(form, button));
  form.dataset.busy = "1";
  const label = button?.innerHTML;
  if (button?.dataset.busy) {
    button.textContent = button.dataset.busy;
    button.setAttribute("aria-busy", "true");
  }
  if (!inPlace) return;
  event.preventDefault();
  let answer;
  try {
    say("");
    answer = await fetch(form.action, { method: "POST", body, cache: "no-store" });
  } catch {
    say("The service did not answer. Nobody knows whether it has acted.");
  }
  delete form.dataset.busy;
  if (button) { button.innerHTML = label; button.removeAttribute("aria-busy"); }
  if (answer?.ok) history.replaceState(null, "", answer.url); // what happened is a part of the address
  tag = ""; // updates in the meantime did not change the button
  if (answer && !answer.ok) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    say(page.querySelector(".problem")?.textContent.trim() || `The service answered HTTP ${answer.status}.`);
  }
  poll();
});
// A page that comes back from the history is not being sent.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// An amount is checked, and marked if wrong, before it is sent.
const amount = document.getElementById("amount");
function check() {
  if (!amount) return true;
  const right = /^\s*\d+(\.\d+)?([eE][+-]?\d+)?\s*$/.test(amount.value) && /[1-9]/.test(amount.value.split(/e/i)[0]);
  const error = document.getElementById("amount-error");
  if (right) {
    amount.removeAttribute("aria-invalid");
    amount.removeAttribute("aria-describedby");
    set(error, "");
  } else {
    amount.setAttribute("aria-invalid", "true");
    amount.setAttribute("aria-describedby", "amount-error");
    set(error, "The number of tokens must be a decimal number above 0.");
    amount.focus();
  }
  return right;
}

// times multiplies decimals exactly, because a price must not be rounded.
function times(a, b) {
  const [x, y] = [a, b].map((s) => { const [whole, part = ""] = s.split("."); return { n: BigInt(whole + part), places: part.length }; });
  const places = x.places + y.places, digits = String(x.n * y.n).padStart(places + 1, "0");
  const part = places ? digits.slice(-places).replace(/0+$/, "") : "";
  return (places ? digits.slice(0, -places) : digits) + (part && "." + part);
}
// grouped separates the thousands of a decimal.
function grouped(n) {
  const [whole, part] = n.split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? "." + part : "");
}
amount?.addEventListener("input", () => {
  const text = amount.value.trim();
  if (amount.hasAttribute("aria-invalid")) {
    const at = document.activeElement;
    check();
    at.focus();
  }
  const plain = /^\d+(\.\d+)?$/.test(text) && /[1-9]/.test(text);
  for (const price of document.querySelectorAll(".price")) price.hidden = !plain; // a price of another amount would mislead
  if (!plain) return;
  for (const price of document.querySelectorAll("[data-each]")) {
    const n = times(price.dataset.each, text);
    set(price, grouped(n) + (!price.hasAttribute("data-unit") ? "" : n === "1" ? " token" : " tokens"));
  }
});
if (amount?.getAttribute("aria-invalid")) amount.focus();

// Parts that were not sent with the page are fetched on demand.
async function part(address, id) {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error(answer.status);
  return new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(id);
}
document.addEventListener("toggle", async (event) => {
  const details = event.target;
  if (!details.open || !details.dataset.body || details.dataset.fetched) return;
  details.dataset.fetched = "1";
  try {
    const body = await part(details.dataset.body, "body");
    details.querySelector(".bytes").replaceChildren(...body.childNodes);
    dress(details);
  } catch {
    delete details.dataset.fetched; // the link is still there
  }
}, true);
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a.earlier");
  if (link && live) {
    event.preventDefault();
    try {
      const piece = await part(link.href, "piece");
      const list = live.querySelector("#timeline");
      list.dataset.fetched = "";
      const entries = piece.querySelectorAll("#timeline > li");
      list.prepend(...entries);
      const earlier = piece.querySelector("#earlier");
      if (earlier) link.parentNode.replaceChildren(...earlier.childNodes); else link.parentNode.remove();
      entries[0]?.querySelector("summary")?.focus();
    } catch {
      location.assign(link.href);
    }
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const source = document.getElementById(copy.dataset.copy), label = copy.innerHTML;
    try {
      await navigator.clipboard.writeText(source.textContent);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source); // so that the user can copy with the keyboard
      copy.textContent = "Selected";
    }
    setTimeout(() => { copy.innerHTML = label; }, 1500);
  }
});

// dress shows the controls that need this script.
function dress(root) { for (const b of root.querySelectorAll("[data-copy][hidden]")) b.hidden = false; }

dress(document);
tick();
setInterval(tick, 250);
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
timer = setTimeout(poll, 150);
