// The queue: what runs next, what each task waits for, and how long the queue was.
import { useEffect, useMemo, useState } from "preact/hooks";
import { html, Copy, Empty, count, moment, plain } from "/ui.js";
import { get, stream } from "/api.js";
import { Plot, axis, colour, fromZero, steps, timeAxis, timeSeries } from "/plot.js";

const TONES = { queued: "quiet", claimed: "go", held: "warn", poison: "bad" };
const Task = ({ id, name }) => html`<a href=${`/task/${encodeURIComponent(id)}`}>${plain(name) || plain(id)}</a><small>${plain(id)}</small>`;

function Waiting({ waiting, at }) {
  const data = useMemo(() => {
    const times = waiting.map((each) => Date.parse(each.at) / 1000), counts = waiting.map((each) => each.count);
    if (times.length) { times.push(Date.parse(at) / 1000); counts.push(counts.at(-1)); }
    return [times, counts];
  }, [waiting]);
  if (!waiting.length) return null;
  const options = () => ({
    scales: { y: fromZero(1) }, axes: [timeAxis(), axis({ size: 44, values: (_, values) => values.map((value) => (Number.isInteger(value) ? count(value) : "")) })],
    series: [timeSeries(), { label: "Waiting", stroke: colour("--go"), fill: colour("--go-soft"), width: 2, paths: steps(), points: { show: false } }],
  });
  return html`<section class="card plot"><h2>Waiting tasks, last 24 h</h2><${Plot} label=${`Waiting tasks over time; now ${waiting.at(-1).count}`} data=${data} options=${options} /></section>`;
}

function Items({ items, left_out }) {
  return html`<div class="scroll" tabindex="0"><table class="tasks queue"><thead><tr><th class="right">No</th><th>Task</th><th>State</th><th class="opt">Agent</th><th class="opt">Pool</th><th class="right opt">Priority</th><th>Waits for</th><th class="opt">Since</th></tr></thead><tbody>
    ${items.map((item, number) => html`<tr key=${item.task_id} class="tone-${TONES[item.state] || "quiet"}"><td class="right num">${number + 1}</td><td class="name"><${Task} id=${item.task_id} name=${item.task_name} /></td>
      <td><span class="state tone-${TONES[item.state] || "quiet"}"><i></i>${plain(item.state)}</span></td><td class="opt">${plain(item.agent) || "–"}</td><td class="opt">${plain(item.pool)}</td><td class="right num opt">${item.front ? "first" : item.priority}</td>
      <td class="why">${plain(item.waits) || "its turn"}${item.lost > 0 && html` <small class="quiet">lost ${item.lost} times</small>`}</td><td class="opt">${moment(item.added_at)}</td></tr>`)}
  </tbody></table></div>${left_out > 0 && html`<p class="quiet">${left_out} more: <code>holdfast queue ls</code></p>`}`;
}

function Schedules({ schedules }) {
  if (!schedules.length) return null;
  return html`<section class="card pad"><h2>Schedules</h2><div class="scroll" tabindex="0"><table><thead><tr><th>Name</th><th>Every</th><th>Agent</th><th>Next</th><th>Last</th></tr></thead><tbody>
    ${schedules.map((each) => html`<tr key=${each.name}><td>${plain(each.name)}</td><td>${plain(each.every)}</td><td>${plain(each.agent)}</td><td>${moment(each.next_at)}</td><td>${moment(each.last_at)}</td></tr>`)}</tbody></table></div></section>`;
}

/** The page, from the data of /api/queue. */
export function QueueView({ found }) {
  const { items, counts, obstacles, schedules, left_out, waiting, at } = found;
  const isPaused = found.paused.length > 0;
  return html`<div class="bar"><h1>Queue</h1><div class="counts">${Object.entries(counts).map(([state, number]) => html`<span class="count"><b class="num">${number}</b> ${plain(state)}</span>`)}</div></div>
    ${obstacles.length > 0 && html`<div class="attention" role="status"><ul>${obstacles.map((each) => html`<li>${plain(each)}</li>`)}</ul></div>`}
    <${Waiting} waiting=${waiting} at=${at} />
    ${items.length ? html`<${Items} items=${items} left_out=${left_out} />` : html`<${Empty} title="The queue is empty"><p>Add a task with <code>holdfast submit --agent NAME "…"</code>.</p><//>`}
    <${Schedules} schedules=${schedules} />
    <section class="card next"><h2>On the command line</h2><ul><li><${Copy} text="holdfast queue ls" /><small class="quiet">the same list</small></li>
      <li><${Copy} text=${isPaused ? "holdfast queue resume" : "holdfast queue pause"} /><small class="quiet">${isPaused ? "go on" : "start nothing more"}</small></li></ul></section>`;
}

export function Queue() {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    document.title = "Queue – holdfast";
    let timer = 0, isGone = false;
    const load = () => get("/api/queue").then((value) => { if (!isGone) { setFound(value); setProblem(""); } }, (error) => !isGone && setProblem(error.message));
    const soon = () => { clearTimeout(timer); timer = setTimeout(load, 300); };
    const source = stream(() => "/api/stream", { hello: load, board: soon, again: load });
    return () => { isGone = true; clearTimeout(timer); source.close(); };
  }, []);
  return html`<main class="page stack">${problem && html`<p class="problem">${problem}</p>`}${found ? html`<${QueueView} found=${found} />` : html`<h1>Queue</h1><p class="loading">Loading…</p>`}</main>`;
}
