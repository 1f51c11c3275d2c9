// Tokens and cost: against the budgets, with a forecast, and over time.
import { useMemo } from "preact/hooks";
import { html, count, dollars, duration, now } from "/ui.js";
import { Plot, axis, colour, fromZero, timeAxis, timeSeries } from "/plot.js";

const NAMES = { cost_usd: "Cost", tokens: "Tokens", turns: "Turns", paid_calls: "Paid calls", retries: "Retries", active_s: "Active time" };
const shown = (name, value) => (value == null ? "–" : name === "cost_usd" ? dollars(value) : name === "active_s" ? duration(value) : count(value));

/** When a budget is used up, if it goes on like this. */
function forecast(budget, active_s, isLive) {
  if (!isLive || !budget.limit || !budget.used || !active_s || ["active_s", "retries", "paid_calls"].includes(budget.name)) return "";
  const left_s = ((budget.limit - budget.used) / budget.used) * active_s;
  return left_s > 0 ? `at this rate, used up in ${duration(left_s)} of work` : "used up";
}

export function Budgets({ detail }) {
  const isLive = !detail.manifest.finished_at;
  const isWorking = detail.attempts.some((attempt) => attempt.kind === "agent" && attempt.state === "running");
  const since_s = isWorking && detail.loaded_at ? Math.max(0, (now.value - detail.loaded_at) / 1000) : 0;
  const budgets = detail.budgets.map((budget) => (budget.name === "active_s" ? { ...budget, used: budget.used + since_s } : budget));
  const active_s = budgets.find((budget) => budget.name === "active_s")?.used;
  const rows = budgets.filter((budget) => budget.limit != null || budget.used);
  if (!rows.length) return null;
  return html`<section class="card budgets" aria-label="Usage"><h2>Usage</h2>${rows.map((budget) => {
    const share = budget.limit ? Math.min(1, (budget.used || 0) / budget.limit) : null;
    const told = budget.used == null && isLive ? "the agent has not reported it yet" : forecast(budget, active_s, isLive);
    return html`<div class="budget ${share >= 0.9 ? "tone-bad" : share >= 0.7 ? "tone-warn" : ""}"><span>${NAMES[budget.name] || budget.name}</span>
      <span class="num" title=${budget.is_at_least ? "At least: not everything was reported" : undefined}>${budget.is_at_least && !budget.used ? "unknown" : `${budget.is_at_least ? "≥ " : ""}${shown(budget.name, budget.used)}`}${budget.limit != null && html`<small> of ${shown(budget.name, budget.limit)}</small>`}</span>
      ${share != null && html`<meter min="0" max="1" value=${share} aria-label=${`${NAMES[budget.name]} used`}></meter>`}${told && html`<small class="quiet">${told}</small>`}</div>`;
  })}</section>`;
}

/** Sums over time: a report adds to those before, or replaces those of its attempt. */
export function sums(reports) {
  const of = new Map();
  const rows = [[], [], []];
  let base = { tokens: 0, cost: 0 };
  for (const report of reports) {
    const own = of.get(report.attempt) || { tokens: 0, cost: 0 };
    const tokens = (report.input_tokens || 0) + (report.output_tokens || 0), cost = report.cost_usd || 0;
    if (report.is_of_session) {
      for (const [attempt, each] of of) if (attempt !== report.attempt && each.session === report.session) of.delete(attempt);
      of.set(report.attempt, { tokens, cost, session: report.session });
    } else of.set(report.attempt, report.is_cumulative ? { tokens, cost } : { tokens: own.tokens + tokens, cost: own.cost + cost });
    base = [...of.values()].reduce((sum, each) => ({ tokens: sum.tokens + each.tokens, cost: sum.cost + each.cost }), { tokens: 0, cost: 0 });
    rows[0].push(Date.parse(report.at) / 1000);
    rows[1].push(base.tokens);
    rows[2].push(base.cost);
  }
  return rows;
}

export function Chart({ reports, budgets }) {
  const data = useMemo(() => { const all = sums(reports); return all[2].some(Boolean) ? all : all.slice(0, 2); }, [reports]);
  if (reports.length < 2) return html`<p class="quiet pad">The agent has reported ${reports.length ? "once" : "nothing"} so far.</p>`;
  const hasCost = data.length === 3, limit = budgets.find((budget) => budget.name === "cost_usd")?.limit;
  const options = () => ({
    scales: { cost: fromZero(limit), y: fromZero() },
    series: [timeSeries(), { label: "Tokens", stroke: colour("--go"), width: 2, fill: colour("--go-soft"), value: (_, v) => count(v) },
      ...(hasCost ? [{ label: "Cost", scale: "cost", stroke: colour("--ask"), width: 2, value: (_, v) => dollars(v) }] : [])],
    axes: [timeAxis(), axis({ size: 56, values: (_, values) => values.map(count) }), ...(hasCost ? [axis({ scale: "cost", side: 1, size: 60, grid: { show: false }, values: (_, values) => values.map(dollars) })] : [])],
  });
  return html`<${Plot} label="Tokens and cost over time" data=${data} options=${options} />`;
}
