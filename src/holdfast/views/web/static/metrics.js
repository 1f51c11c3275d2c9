// Figures of the home: what ended, what it cost, which agents and tools, with plots by day.
import { useEffect, useMemo, useState } from "preact/hooks";
import { html, Copy, cost, count, dollars, duration, plain, tokens } from "/ui.js";
import { get, stream } from "/api.js";
import { Plot, axis, bars, colour, fromZero } from "/plot.js";

const HALF_S = 43200;
/** The figures are those of all tasks: not read for every change. */
const AGAIN_MS = 2000;
const share = (value) => (value == null ? "–" : `${Math.round(value * 100)} %`);

function Facts({ title, figures }) {
  const rows = [
    ["Tasks", figures.tasks], ["Ended", figures.ended], ["Completed", share(figures.success_rate)], ["Interrupted", share(figures.interrupt_rate)], ["Retries", figures.retries],
    ["Median duration", duration(figures.median_duration_s)], ["Agent time", duration(figures.active_s)], ["Tokens", tokens(figures.api_usage)], ["Cost", cost(figures.api_usage)],
  ];
  return html`<section class="card pad"><h2>${title}</h2><dl class="figures">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd class="num">${value}</dd></div>`)}</dl></section>`;
}

function Days({ days }) {
  const times = useMemo(() => days.map((each) => Date.parse(`${each.day}T00:00:00Z`) / 1000), [days]);
  const ended = useMemo(() => [times, days.map((each) => each.completed + each.failed), days.map((each) => each.completed)], [days]);
  const spent = useMemo(() => [times, days.map((each) => each.cost_usd)], [days]);
  const used = useMemo(() => [times, days.map((each) => each.tokens)], [days]);
  const date = axis({ size: 28, values: (_, values) => values.map((value) => new Date(value * 1000).toISOString().slice(5, 10)) });
  const one = (label, name, shown, width) => () => ({
    tzDate: utc, scales: { x: { range: (_, low, high) => [low - HALF_S, high + HALF_S] }, y: fromZero() }, axes: [date, axis({ size: width, values: (_, values) => values.map(shown) })],
    series: [{ label: "Day", value: (_, at) => (at == null ? "–" : new Date(at * 1000).toISOString().slice(0, 10)) }, { label, stroke: colour(name), fill: colour(name), width: 0, paths: bars(), points: { show: false }, value: (_, value) => (value == null ? "–" : shown(value)) }],
  });
  const both = () => ({
    ...one("Failed", "--bad", count, 44)(),
    series: [one("", "--bad", count, 44)().series[0],
      { label: "Failed", stroke: colour("--bad"), fill: colour("--bad"), width: 0, paths: bars(), points: { show: false }, value: (plot, value, _, at) => (at == null ? "–" : count(value - plot.data[2][at])) },
      { label: "Completed", stroke: colour("--done"), fill: colour("--done"), width: 0, paths: bars(), points: { show: false }, value: (_, value) => (value == null ? "–" : count(value)) }],
  });
  const total = days.reduce((all, each) => all + each.completed + each.failed, 0);
  return html`<div class="plots">
    <section class="card plot"><h2>Ended per day</h2><${Plot} label=${`Tasks that ended per day, ${total} in ${days.length} days`} data=${ended} options=${both} /></section>
    <section class="card plot"><h2>Cost per day</h2><${Plot} label="Cost per day" data=${spent} options=${one("Cost", "--ask", dollars, 60)} /></section>
    <section class="card plot"><h2>Tokens per day</h2><${Plot} label="Tokens per day" data=${used} options=${one("Tokens", "--go", count, 56)} /></section>
    </div>
    <details class="card pad"><summary>Days as a table</summary><div class="scroll" tabindex="0"><table><thead><tr><th>Day (UTC)</th><th class="right">Completed</th><th class="right">Failed</th><th class="right">Tokens</th><th class="right">Cost</th><th class="right">Work</th></tr></thead><tbody>
      ${[...days].reverse().map((each) => html`<tr key=${each.day}><td>${each.day}</td><td class="right num">${each.completed}</td><td class="right num">${each.failed}</td><td class="right num">${count(each.tokens)}</td><td class="right num">${dollars(each.cost_usd)}</td><td class="right num">${duration(each.active_s)}</td></tr>`)}</tbody></table></div></details>`;
}
// Days are those of UTC, also where the browser is elsewhere.
const utc = (at) => { const date = new Date(at * 1000); return new Date(date.getTime() + date.getTimezoneOffset() * 60000); };

function Agents({ agents }) {
  return html`<section class="card pad"><h2>Agents</h2><div class="scroll" tabindex="0"><table class="agents"><thead><tr><th>Agent</th><th class="right">Tasks</th><th class="right">Completed</th><th class="right">Retries</th><th class="right">Median</th><th class="right">Tokens</th><th class="right">Cost</th></tr></thead><tbody>
    ${agents.map((each) => html`<tr key=${each.agent}><td>${plain(each.agent) || "–"}</td><td class="right num">${each.tasks}</td><td class="right num">${each.ended ? share(each.completed / each.ended) : "–"}</td><td class="right num">${each.retries}</td>
      <td class="right num">${duration(each.median_s)}</td><td class="right num">${tokens(each)}</td><td class="right num">${cost(each)}</td></tr>`)}</tbody></table></div></section>`;
}

function Tools({ tools }) {
  const rows = Object.entries(tools.breakdown);
  if (!rows.length) return null;
  const most = Math.max(...rows.map(([, calls]) => calls));
  return html`<section class="card pad"><h2>Tools</h2><dl class="tools">${rows.map(([name, calls]) => html`<div><dt>${plain(name)}</dt><dd><meter min="0" max=${most} value=${calls} aria-label=${`Calls of ${plain(name)}`}></meter><span class="num">${count(calls)}</span></dd></div>`)}</dl></section>`;
}

/** The page, from the data of /api/metrics. */
export function MetricsView({ found }) {
  return html`<div class="bar"><h1>Metrics</h1></div>
    <div class="two"><${Facts} title="Last 24 h" figures=${found.last_24h} /><${Facts} title="Since the beginning" figures=${found.home} /></div>
    <${Days} days=${found.days} /><${Agents} agents=${found.agents} /><${Tools} tools=${found.home.tool_usage} />
    <section class="card next"><h2>On the command line</h2><ul><li><${Copy} text="holdfast metrics" /></li><li><${Copy} text="holdfast metrics --prometheus" /><small class="quiet">for a monitoring system</small></li></ul></section>`;
}

export function Metrics() {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    document.title = "Metrics – holdfast";
    let timer = 0, isGone = false;
    const load = () => { timer = 0; get("/api/metrics").then((value) => { if (!isGone) { setFound(value); setProblem(""); } }, (error) => !isGone && setProblem(error.message)); };
    const soon = () => { timer ||= setTimeout(load, AGAIN_MS); };
    const source = stream(() => "/api/stream", { hello: load, board: soon, again: soon });
    return () => { isGone = true; clearTimeout(timer); source.close(); };
  }, []);
  return html`<main class="page stack">${problem && html`<p class="problem">${problem}</p>`}${found ? html`<${MetricsView} found=${found} />` : html`<h1>Metrics</h1><p class="loading">Loading…</p>`}</main>`;
}
