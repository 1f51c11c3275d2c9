// Start, and which page an address means.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { html, Dialogs, dialog, Empty } from "/ui.js";
import { connection, enter, isIn, isReadOnly } from "/api.js";

export const place = signal(location.pathname + location.search);
const showsKeys = signal(false);

// The code of a page is loaded with its first use: the board needs neither plots nor Markdown. `static_files.py`
// lists what each page imports, so that a browser requests everything at once.
const PAGES = {
  board: async () => (await import("/board.js")).Board,
  task: async () => (await import("/task.js")).TaskPage,
  new: async () => (await import("/new_task.js")).NewTask,
  queue: async () => (await import("/queue.js")).Queue,
  metrics: async () => (await import("/metrics.js")).Metrics,
};
const pages = signal({});
const problem = signal("");
const pageOf = (address) => { const name = address.split(/[/?]/)[1]; return name in PAGES ? name : "board"; };

async function load(name) {
  if (pages.value[name]) return;
  try {
    const found = await PAGES[name]();
    pages.value = { ...pages.value, [name]: found };
    problem.value = "";
  } catch { problem.value = "The page could not be loaded: is the server still running?"; }
}

export function go(address) {
  history.pushState(null, "", address);
  place.value = address;
  scrollTo(0, 0);
}

addEventListener("popstate", () => { place.value = location.pathname + location.search; });
addEventListener("holdfast-go", (event) => go(event.detail));
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='/']");
  if (!link || event.defaultPrevented || event.metaKey || event.ctrlKey || event.shiftKey || event.button || link.target) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});

document.addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || dialog.value) return;
  if (event.target.matches?.("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "?") showsKeys.value = !showsKeys.value;
  else if (event.key === "Escape") showsKeys.value = false;
  else if (event.key === "n" && !isReadOnly.value) go("/new");
  else if (event.key === "b") go("/");
  else if (event.key === "q") go("/queue");
  else if (event.key === "m") go("/metrics");
  else if (event.key === "/") {
    const field = document.querySelector("[data-search]");
    if (field) { event.preventDefault(); field.focus(); }
  }
});

const KEYS = [
  ["b", "board"], ["q", "queue"], ["m", "metrics"], ["n", "new task"], ["/", "filter, or search the log"], ["j k", "next and previous task"],
  ["Enter", "open the task"], ["1 … 7", "tabs of a task"], ["f", "follow the log"], ["Esc", "leave a field"], ["?", "this list"],
];

function Keys() {
  return html`<div class="keys card" role="dialog" aria-label="Keys"><h2>Keys</h2><dl>${KEYS.map(([key, does]) =>
    html`<div><dt>${key.split(" ").map((each) => (each === "…" ? " … " : html`<kbd>${each}</kbd>`))}</dt><dd>${does}</dd></div>`)}</dl></div>`;
}

function Locked() {
  return html`<main class="page"><${Empty} title="This tab has no access">
    <p>Open the address that <code>holdfast serve</code> prints. It works once; press Enter in that terminal for another.</p>
    <p>If another tab is open, load this page again.</p><//></main>`;
}

function Page() {
  const path = place.value.split("?")[0], name = pageOf(path), Found = pages.value[name];
  useEffect(() => { load(name); }, [name]);
  if (!Found) return html`<main class="page"><p class=${problem.value ? "problem" : "loading"}>${problem.value || "Loading…"}</p></main>`;
  const id = name === "task" ? decodeURIComponent(path.slice(6)) : undefined;
  return html`<${Found} key=${id ?? name} id=${id} />`;
}

const WORDS = { live: "live", slow: "every few seconds", lost: "connection lost, trying again", idle: "" };

function App() {
  useEffect(() => { document.title = "holdfast"; }, []);
  if (!isIn.value) return html`<${Locked} />`;
  return html`
    <a class="skip" href="#content">Skip to the content</a>
    <header class="top">
      <a href="/" class="brand"><img src="/icon.svg" alt="" width="22" height="22" />holdfast</a>
      <nav>
        <a href="/" aria-current=${place.value.split("?")[0] === "/" ? "page" : undefined}>Tasks</a>
        <a href="/queue" aria-current=${place.value === "/queue" ? "page" : undefined}>Queue</a>
        <a href="/metrics" aria-current=${place.value === "/metrics" ? "page" : undefined}>Metrics</a>
        ${!isReadOnly.value && html`<a href="/new" aria-current=${place.value === "/new" ? "page" : undefined}>New task</a>`}
      </nav>
      <span class="grow"></span>
      ${isReadOnly.value && html`<span class="pill">read-only</span>`}
      <span class="connection ${connection.value}" role="status" title=${WORDS[connection.value]}><i></i>${WORDS[connection.value]}</span>
      <button type="button" class="ghost" onClick=${() => { showsKeys.value = !showsKeys.value; }} aria-label="Keys">?</button>
    </header>
    <div id="content"><${Page} /></div>
    ${showsKeys.value && html`<${Keys} />`}
    <${Dialogs} />`;
}

await Promise.all([enter(), load(pageOf(place.value))]);
const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
// The other pages, once this one is there: opening them then needs no request for code.
setTimeout(() => Object.keys(PAGES).forEach(load), 3000);
