// The page of a task in a file.
import { data } from "/data.js";
import { render } from "preact";
import { html, moment, plain, Dialogs } from "/ui.js";
import { TaskPage } from "/task.js";

// The address of a file cannot become that of a task: only what is after the question mark is kept.
const own = (address) => location.pathname + new URL(address, "http://file.invalid").search;
const replace = history.replaceState.bind(history);
history.replaceState = (state, title, address) => { try { replace(state, "", own(address)); } catch { /* a browser that forbids it for files */ } };
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='/']");
  if (!link) return;
  event.preventDefault();
  if (new URL(link.href).search) location.assign(own(link.getAttribute("href")));
});
document.addEventListener("keydown", (event) => {
  const field = document.querySelector("[data-search]");
  if (event.key === "/" && field && !event.target.matches?.("input, textarea, select")) { event.preventDefault(); field.focus(); }
});

function Shared() {
  return html`
    <header class="top"><span class="brand">holdfast</span><span class="grow"></span>
      <span class="pill">as of ${moment(data.at)}</span></header>
    ${data.left_out.length > 0 && html`<aside class="page left-out" role="note"><b>Left out of this file</b><ul>${data.left_out.map((each) => html`<li>${plain(each)}</li>`)}</ul></aside>`}
    <div id="content"><${TaskPage} id=${data.task_id} /></div>
    <${Dialogs} />`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${Shared} />`, root);
