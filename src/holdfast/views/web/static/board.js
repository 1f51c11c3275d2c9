// All tasks, in the groups of `ls`: as a list, or as columns.
import { Component } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html, State, Elapsed, Empty, tokens, cost, plain, tone, serverNow } from "/ui.js";
import { get, stream, isReadOnly } from "/api.js";
import { signal } from "@preact/signals";

const tasks = signal({ rows: new Map(), groups: [], left_out: 0, isLoaded: false, error: "" });
const status = signal(null);
const TITLES = { "needs you": "Needs you", working: "Working", waiting: "Waiting", queued: "Queued", ended: "Ended" };

async function load() {
  try {
    const found = await get("/api/tasks");
    const at = serverNow();
    tasks.value = { is_cut: false, ...found, rows: new Map(found.rows.map((row) => [row.task_id, { ...row, at }])), isLoaded: true, error: "" };
    status.value = await get("/api/status");
  } catch (error) {
    tasks.value = { ...tasks.value, error: error.message };
  }
}

let isRefreshing = false;
function change(changed) {
  const rows = new Map(tasks.value.rows), at = serverNow();
  for (const [id, row] of Object.entries(changed)) row ? rows.set(id, { ...row, at }) : rows.delete(id);
  tasks.value = { ...tasks.value, rows };
  if (!isRefreshing) {
    isRefreshing = true;
    setTimeout(async () => { isRefreshing = false; status.value = await get("/api/status").catch(() => status.value); }, 2000);
  }
}

/** Queued tasks in the order in which they start, all others with the newest first. */
const isOver = (row) => Boolean(row.finished_at);
const newestAt = (row) => row.finished_at || row.started_at || "";
// In each group, questions come before failures, and queued tasks are in their order.
const compare = (a, b) => isOver(a) - isOver(b) || (a.queue?.position ?? 1e9) - (b.queue?.position ?? 1e9) || newestAt(b).localeCompare(newestAt(a)) || b.task_id.localeCompare(a.task_id);
/** The tokens and cost that are known. */
const used = (row) => [tokens(row.usage), cost(row.usage)].filter((each) => each !== "–").join(" · ");

const nameOf = (path) => (path || "").split("/").filter(Boolean).pop() || "–";
const words = (row) => `${row.task_id} ${row.task_name} ${row.state} ${row.agent} ${row.stage} ${row.project_dir} ${row.last_line}`.toLowerCase();
const open = (id) => dispatchEvent(new CustomEvent("holdfast-go", { detail: `/task/${encodeURIComponent(id)}` }));

function Stages({ row }) {
  const stages = row.stages || [];
  if (stages.length < 2) return null;
  return html`<span class="dots" title=${stages.map((each) => `${each.name}: ${each.state}`).join("\n")}>${stages.map((each) => html`<i class="stage-${each.state}"></i>`)}</span>`;
}

class Row extends Component {
  shouldComponentUpdate(next) { return next.row !== this.props.row || next.isChosen !== this.props.isChosen; }
  render({ row, isChosen }) {
    return html`<tr class="tone-${tone(row.state)} ${isChosen ? "chosen" : ""}" onClick=${(e) => { if (!e.target.closest("a")) open(row.task_id); }}>
      <td class="name"><a href=${`/task/${encodeURIComponent(row.task_id)}`}>${plain(row.task_name) || row.task_id}</a><small>${row.task_id}</small></td>
      <td class="is"><${State} state=${row.state} /></td>
      <td class="opt">${plain(row.agent)}</td>
      <td class="opt">${plain(row.stage) || "–"}<${Stages} row=${row} /></td>
      <td class="right time"><${Elapsed} row=${row} at=${row.at} /></td>
      <td class="right opt num">${tokens(row.usage)}</td>
      <td class="right num opt">${cost(row.usage)}</td>
      <td class="last" title=${plain(row.note + row.last_line)}><b>${plain(row.note)}</b>${plain(row.last_line)}</td>
    </tr>`;
  }
}

class Card extends Component {
  shouldComponentUpdate(next) { return next.row !== this.props.row || next.isChosen !== this.props.isChosen; }
  render({ row, isChosen }) {
    return html`<a class="card task tone-${tone(row.state)} ${isChosen ? "chosen" : ""}" href=${`/task/${encodeURIComponent(row.task_id)}`}>
      <span class="row"><${State} state=${row.state} /><span class="grow"></span><${Elapsed} row=${row} at=${row.at} /></span>
      <strong>${plain(row.task_name) || row.task_id}</strong>
      <p>${plain(row.note + row.last_line)}</p>
      <span class="row meta">${plain(row.agent)}<${Stages} row=${row} /><span class="grow"></span><span class="num">${used(row)}</span></span>
    </a>`;
  }
}

export function Board() {
  const [filter, setFilter] = useState("");
  const [project, setProject] = useState("");
  const [isBoard, setBoard] = useState(localStorage.getItem("holdfast.view") === "board");
  const [chosen, setChosen] = useState("");
  const latest = useRef("");
  useEffect(() => {
    document.title = "Tasks – holdfast";
    const source = stream(() => "/api/stream", { hello: load, board: change, again: load });
    return () => source.close();
  }, []);
  const { rows, groups, isLoaded, error, left_out, is_cut } = tasks.value;
  const [members, order, projects] = useMemo(() => {
    const wanted = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [...rows.values()].filter((row) => (!project || row.project_dir === project) && wanted.every((word) => words(row).includes(word)));
    found.sort(compare);
    const grouped = new Map(groups.map((group) => [group, []]));
    for (const row of found) grouped.get(row.group)?.push(row);
    return [grouped, [...grouped.values()].flat().map((row) => row.task_id), [...new Set([...rows.values()].map((row) => row.project_dir).filter(Boolean))].sort()];
  }, [rows, groups, filter, project]);
  useEffect(() => {
    const onKey = (event) => {
      if (event.metaKey || event.ctrlKey || event.target.matches?.("input, textarea, select, a, button") && event.key === "Enter" || event.target.matches?.("input, textarea, select")) return;
      // Not `chosen`: the next key may come before this one is drawn.
      const at = order.indexOf(latest.current);
      const choose = (to) => setChosen(latest.current = order[to] || "");
      if (event.key === "j") choose(Math.min(at + 1, order.length - 1));
      else if (event.key === "k") choose(Math.max(at - 1, 0));
      else if (event.key === "Enter" && latest.current) open(latest.current);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [order]);
  useEffect(() => { document.querySelector(".chosen")?.scrollIntoView({ block: "nearest" }); }, [chosen]);
  const shown = groups.filter((group) => members.get(group).length);
  const show = (board) => { setBoard(board); localStorage.setItem("holdfast.view", board ? "board" : "list"); };
  // Questions of tasks are in the list.
  const alerts = (status.value?.alerts || []).filter((alert) => alert.level !== "question");
  return html`<main class="page">
    <div class="bar">
      <h1>Tasks</h1>
      <div class="counts">${groups.map((group) => html`<span class="count group-${group.replace(" ", "-")}"><b class="num">${[...rows.values()].filter((row) => row.group === group).length}</b> ${TITLES[group].toLowerCase()}</span>`)}</div>
      <span class="grow"></span>
      ${projects.length > 1 && html`<select aria-label="Project" value=${project} onChange=${(e) => setProject(e.target.value)}>
        <option value="">all projects</option>${projects.map((each) => html`<option value=${each}>${nameOf(each)}</option>`)}</select>`}
      <input data-search type="search" placeholder="Filter  /" aria-label="Filter tasks" value=${filter} onInput=${(e) => setFilter(e.target.value)} />
      <div class="switch" role="group" aria-label="View">
        <button type="button" aria-pressed=${!isBoard} onClick=${() => show(false)}>List</button>
        <button type="button" aria-pressed=${isBoard} onClick=${() => show(true)}>Board</button>
      </div>
    </div>
    ${error && html`<p class="problem">${error}</p>`}
    ${alerts.length > 0 && html`<section class="attention" aria-label="Needs attention"><ul>${alerts.slice(0, 20).map((alert) => html`<li class=${alert.level}>${plain(alert.text)}</li>`)}</ul>${alerts.length > 20 && html`<p class="quiet">${alerts.length - 20} more: <code>holdfast status</code></p>`}</section>`}
    ${!isLoaded ? html`<p class="loading">Loading…</p>` : shown.length === 0
      ? html`<${Empty} title=${rows.size ? "No task matches" : "No tasks yet"}>${!rows.size && html`<p>Start one with <code>holdfast run --agent NAME "…"</code>${!isReadOnly.value && html`, or <a href="/new">here</a>`}.</p>`}<//>`
      : isBoard
        ? html`<div class="columns">${groups.map((group) => html`<section key=${group} aria-label=${TITLES[group]}><h2>${TITLES[group]} <span class="num">${members.get(group).length}</span></h2>
            ${members.get(group).map((row) => html`<${Card} key=${row.task_id} row=${row} isChosen=${row.task_id === chosen} />`)}</section>`)}</div>`
        : html`<table class="tasks rows">
            <thead><tr><th class="name">Task</th><th class="is">State</th><th class="opt">Agent</th><th class="opt">Stage</th><th class="right time">Elapsed</th><th class="right opt">Tokens</th><th class="right opt">Cost</th><th class="last">Last line</th></tr></thead>
            ${shown.map((group) => html`<tbody key=${group}><tr class="group"><th colspan="8" scope="rowgroup">${TITLES[group]} <span class="num">${members.get(group).length}</span></th></tr>
              ${members.get(group).map((row) => html`<${Row} key=${row.task_id} row=${row} isChosen=${row.task_id === chosen} />`)}</tbody>`)}
          </table>`}
    ${is_cut && html`<p class="quiet">There are more tasks than this page can show: <code>holdfast ls</code></p>`}
    ${left_out > 0 && html`<p class="quiet">${left_out} older tasks are not shown: <code>holdfast ls --all</code></p>`}
  </main>`;
}
