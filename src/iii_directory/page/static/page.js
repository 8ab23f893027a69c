// Type-ahead, live updates, copy buttons and keys. The page is complete without it.
"use strict";
const status = document.getElementById("status");
const say = (words) => { status.textContent = words; };
const box = document.querySelector(".find input");
let asked = 0;

// What a reader changes in the page itself.
const MINE = ["open", "aria-selected"];

// Replace only what differs, so that focus, scroll position, open details and chosen tabs stay.
function renew(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  const alike = old.nodeName === fresh.nodeName && old.childNodes.length === fresh.childNodes.length;
  if (!alike || !old.childNodes.length) { old.replaceWith(fresh); return; }
  for (const name of old.getAttributeNames()) if (!fresh.hasAttribute(name) && !MINE.includes(name)) old.removeAttribute(name);
  for (const name of fresh.getAttributeNames()) old.setAttribute(name, fresh.getAttribute(name));
  const pairs = [...fresh.childNodes].map((child, at) => [old.childNodes[at], child]);
  for (const [before, after] of pairs) renew(before, after);
}

async function load(url, push) {
  const turn = ++asked;
  const answer = await fetch(url, { headers: { accept: "text/html" } }).catch(() => null);
  if (turn !== asked || !answer || !answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (turn !== asked) return;
  const at = [scrollX, scrollY];
  const focused = document.activeElement.closest("main [href]");
  for (const part of ["main", ".views"]) renew(document.querySelector(part), fresh.querySelector(part));
  const again = focused && !focused.isConnected && document.querySelector(`main [href="${CSS.escape(focused.getAttribute("href"))}"]`);
  if (again) again.focus({ preventScroll: true });
  document.title = fresh.title;
  if (push) history[location.pathname === "/search" ? "replaceState" : "pushState"](null, "", url);
  scrollTo(...at);
  const found = push && document.getElementById("results");
  if (found) say(found.dataset.count === "0" ? "Nothing fits" : `${found.dataset.count} results`);
}

let typing;
box.addEventListener("input", () => {
  // What was filled into a form would be lost.
  if (!document.querySelector("main[data-live]") || document.querySelector("main .fields")) return;
  clearTimeout(typing);
  typing = setTimeout(() => {
    const query = new URLSearchParams(location.pathname === "/search" ? location.search : "");
    query.set("q", box.value);
    load(`/search?${query}`, true);
  }, 120);
});

addEventListener("popstate", () => load(location.href, false));

function pick(step) {
  const hits = [...document.querySelectorAll(".hits > li, .rows > li")].filter((hit) => hit.querySelector("a"));
  if (!hits.length) return;
  const now = hits.findIndex((hit) => hit.hasAttribute("aria-selected"));
  const next = Math.min(Math.max(now + step, 0), hits.length - 1);
  if (now >= 0) hits[now].removeAttribute("aria-selected");
  hits[next].setAttribute("aria-selected", "true");
  const link = hits[next].querySelector("a");
  link.focus({ preventScroll: true });
  hits[next].scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  const field = event.target.matches("input, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !field) { event.preventDefault(); box.focus(); box.select(); }
  else if (event.key === "Escape" && field) event.target.blur();
  else if (event.key === "ArrowDown" && (!field || event.target === box)) { event.preventDefault(); pick(1); }
  else if (event.key === "ArrowUp" && !field) { event.preventDefault(); pick(-1); }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  try { await navigator.clipboard.writeText(button.dataset.copy); }
  catch { say("The browser does not let this page copy"); return; }
  const label = button.textContent;
  button.textContent = "Copied";
  say("Copied");
  setTimeout(() => { button.textContent = label; }, 1200);
});

// A form that is being filled in is never replaced.
const editing = () => document.activeElement.closest("main form");
// The number says what this page has seen, so that a change before the stream opened is told, too.
new EventSource(`/events?seen=${document.currentScript.dataset.seen}`).addEventListener("changed", () => {
  if (!editing() && document.querySelector("main[data-live]")) load(location.href, false);
});
