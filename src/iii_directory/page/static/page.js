// Type-ahead, live updates, copy buttons and keys. The page is complete without it.
"use strict";
const status = document.getElementById("status");
const main = () => document.querySelector("main");
const say = (words) => { status.textContent = words; };
const box = document.querySelector(".find input");
let asked = 0;

// Replace the content of the view by a fresh copy, keeping scroll position and focus.
async function load(url, push) {
  const turn = ++asked;
  const answer = await fetch(url, { headers: { accept: "text/html" } });
  if (turn !== asked || !answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const at = [scrollX, scrollY];
  main().replaceWith(fresh.querySelector("main"));
  document.title = fresh.title;
  if (push) history.replaceState(null, "", url);
  scrollTo(...at);
  const found = document.getElementById("results");
  if (found) say(found.dataset.count === "0" ? "Nothing fits" : `${found.dataset.count} results`);
}

let typing;
box.addEventListener("input", () => {
  if (location.pathname !== "/search") return;
  clearTimeout(typing);
  typing = setTimeout(() => {
    const query = new URLSearchParams(location.search);
    query.set("q", box.value);
    load(`/search?${query}`, true);
  }, 120);
});

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
  if (event.key === "/" && !field) { event.preventDefault(); box.focus(); box.select(); }
  else if (event.key === "Escape" && field) event.target.blur();
  else if (event.key === "ArrowDown" && (!field || event.target === box)) { event.preventDefault(); pick(1); }
  else if (event.key === "ArrowUp" && !field) { event.preventDefault(); pick(-1); }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  const label = button.textContent;
  button.textContent = "Copied";
  say("Copied");
  setTimeout(() => { button.textContent = label; }, 1200);
});

// A form that is being filled in is never replaced.
const editing = () => document.activeElement && document.activeElement.closest("main form");
new EventSource("/events").addEventListener("changed", () => {
  if (!editing() && document.querySelector("main[data-live]")) load(location.href, false);
});
