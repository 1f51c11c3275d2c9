// The smaller tabs of a task: gates, attempts, files, events.
import { useEffect, useState } from "preact/hooks";
import { html, moment, clock, duration, bytes, plain, tokens, dollars } from "/ui.js";
import { text } from "/api.js";
import { ansi } from "/ansi.js";
import { Markdown } from "/markdown.js";
import { takeoverEnd } from "/recorder.js";

/** Reasons that are not those of a check. */
const general = (gate) => gate.reasons.filter((each) => !gate.checks.some((check) => check.reasons.includes(each)));

export function Gates({ gates }) {
  if (!gates.length) return html`<p class="quiet pad">No gate has judged anything yet.</p>`;
  return html`<div class="stack">${[...gates].reverse().map((gate) => html`<article class="card gate ${gate.passed ? "tone-done" : "tone-bad"}">
    <header class="row wrap"><b>${gate.passed ? "Passed" : "Refused"}</b><span>${plain(gate.stage)}, attempt ${gate.ordinal ?? gate.attempt}</span><span class="grow"></span><time class="quiet">${moment(gate.at)}</time></header>
    ${gate.decision && html`<p>Decision: <b>${plain(gate.decision)}</b></p>`}
    ${general(gate).length > 0 && html`<ul>${general(gate).map((each) => html`<li>${plain(each)}</li>`)}</ul>`}
    ${gate.warnings.length > 0 && html`<p class="tone-warn">Warnings</p><ul>${gate.warnings.map((each) => html`<li>${plain(each)}</li>`)}</ul>`}
    ${gate.checks.length > 0 && html`<ul class="checks">${gate.checks.map((check) => html`<li class=${check.passed ? "tone-done" : "tone-bad"}><b>${check.passed ? "✓" : "✕"}</b> ${plain(check.name)}${check.reasons.length > 0 && html`<small>${check.reasons.map(plain).join("; ")}</small>`}</li>`)}</ul>`}
    ${gate.evidence && html`<pre class="evidence">${ansi(gate.evidence)}</pre>`}
  </article>`)}</div>`;
}

/** A takeover is no attempt, but has a number among them. */
const withTakeovers = (attempts, spans) => [...attempts, ...spans.filter((span) => span.kind === "takeover").map((span) => ({
  number: span.attempt, stage: span.stage, kind: `takeover by ${plain(span.by) || "a person"}`, state: span.end ? takeoverEnd(span.outcome) : "now", lived_s: span.seconds,
  detail: `${span.files ? `${span.files} files changed; ` : ""}tokens and cost were not reported`,
}))].sort((one, other) => one.number - other.number);

export function Attempts({ attempts, spans = [], id, chosen }) {
  const [pair, setPair] = useState([]);
  const toggle = (number) => setPair(pair.includes(number) ? pair.filter((each) => each !== number) : [...pair, number].slice(-2));
  return html`<div class="scroll" tabindex="0"><table class="attempts"><thead><tr><th><span class="hidden">Compare</span></th><th>No</th><th>Stage</th><th>What</th><th>State</th><th class="right">Lived</th><th class="right">Tokens</th><th class="right">Cost</th><th>End</th></tr></thead><tbody>
    ${withTakeovers(attempts, spans).map((each) => html`<tr class=${each.number === chosen ? "chosen" : ""}><td>${each.kind === "agent" && html`<input type="checkbox" aria-label=${`Compare attempt ${each.ordinal}`} checked=${pair.includes(each.number)} onChange=${() => toggle(each.number)} />`}</td>
      <td class="num">${each.ordinal ?? ""}</td><td>${plain(each.stage)}</td><td>${each.kind === "agent" ? `${each.agent} (${each.mode})` : each.kind}</td><td>${each.outcome || each.state}</td>
      <td class="right num">${duration(each.lived_s)}</td><td class="right num">${tokens(each)}</td><td class="right num">${dollars(each.cost_usd)}</td><td title=${plain(each.detail)}>${plain(each.detail).slice(0, 120)}</td></tr>`)}
  </tbody></table></div>
  ${pair.length === 2 && html`<div class="pair">${[...pair].sort((a, b) => a - b).map((number) => {
    const each = attempts.find((one) => one.number === number);
    return html`<article class="card"><h3>Attempt ${each.ordinal}</h3><dl class="facts"><dt>Mode</dt><dd>${each.mode}</dd><dt>Outcome</dt><dd>${each.outcome || each.state}</dd><dt>Began</dt><dd>${moment(each.opened_at)}</dd><dt>Lived</dt><dd>${duration(each.lived_s)}</dd>
      <dt>Messages, tools</dt><dd>${each.messages}, ${each.tool_calls}</dd><dt>Tokens</dt><dd>${tokens(each)}</dd><dt>Cost</dt><dd>${dollars(each.cost_usd)}</dd><dt>End</dt><dd>${plain(each.detail) || "–"}</dd></dl>
      <h4>Prompt</h4><${FileText} id=${id} path=${`attempts/${each.name}/prompt`} isRaw /></article>`;
  })}</div>`}`;
}

function FileText({ id, path, isRaw }) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    let isGone = false;
    setFound(null);
    text(`/api/tasks/${encodeURIComponent(id)}/file?path=${encodeURIComponent(path)}`).then((value) => !isGone && setFound(value), (error) => !isGone && setFound(error.message));
    return () => { isGone = true; };
  }, [id, path]);
  if (found == null) return html`<p class="loading">Loading…</p>`;
  return !isRaw && path.endsWith(".md") ? html`<${Markdown} text=${found} />` : html`<pre class="evidence">${ansi(found)}</pre>`;
}

export function Files({ files, id, left_out }) {
  const [path, setPath] = useState(files.find((file) => file.path === "outputs/_summary.md")?.path || files[0]?.path || "");
  const [isRaw, setRaw] = useState(false);
  if (!files.length) return html`<p class="quiet pad">No files to show.</p>`;
  return html`<div class="files"><nav aria-label="Files"><ul>${files.map((file) => html`<li><button type="button" aria-pressed=${file.path === path} onClick=${() => setPath(file.path)}><span>${plain(file.path)}</span><small class="num">${bytes(file.bytes)}</small></button></li>`)}</ul>
    ${left_out > 0 && html`<p class="quiet">${left_out} more</p>`}</nav>
    <div class="content card"><header class="row"><code>${plain(path)}</code><span class="grow"></span>${path.endsWith(".md") && html`<button type="button" aria-pressed=${isRaw} onClick=${() => setRaw(!isRaw)}>Raw</button>`}</header><${FileText} id=${id} path=${path} isRaw=${isRaw} /></div></div>`;
}

const SKIP = new Set(["id", "at", "type", "schema", "spec"]);
const value = (each) => (typeof each === "string" ? each : JSON.stringify(each));
const words = (event) => Object.entries(event).filter(([name, each]) => !SKIP.has(name) && each != null && each !== "" && each !== false).map(([name, each]) => `${name}=${value(each)}`).join("  ");

export function Events({ events }) {
  return html`<div class="scroll" tabindex="0"><table class="events"><tbody>${events.slice(-1000).reverse().map((event) => html`<tr key=${event.id}><td class="num" title=${event.at}>${clock(event.at)}</td><td><b>${plain(event.type)}</b></td><td class="last">${plain(words(event)).slice(0, 600)}</td></tr>`)}</tbody></table></div>`;
}
