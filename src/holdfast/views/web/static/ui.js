// Small things that every page uses: html, times, amounts, states, buttons to copy, dialogs.
import { h } from "preact";
import { useRef, useEffect, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import htm from "htm";

export const html = htm.bind(h);

/** The server's clock, as far as known: times of the journal are compared with it. */
let skew_ms = 0;
export const now = signal(Date.now());
export const setServerTime = (iso) => { skew_ms = Date.parse(iso) - Date.now() || 0; };
export const serverNow = () => Date.now() + skew_ms;
setInterval(() => { if (!document.hidden) now.value = serverNow(); }, 1000);

/** A duration as in all other views (duration_text in clock.py). */
export function duration(seconds) {
  if (seconds == null || !isFinite(seconds)) return "–";
  const s = Math.max(0, seconds), two = (n) => String(n).padStart(2, "0");
  if (s < 59.95) return `${s.toFixed(1)}s`;
  const whole = Math.floor(s + 0.5), m = Math.floor(whole / 60), hours = Math.floor(m / 60);
  if (m < 60) return `${m}m${two(whole % 60)}s`;
  return hours < 48 ? `${hours}h${two(m % 60)}m` : `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
}

export function count(n) {
  if (n == null) return "–";
  if (n < 1000) return String(Math.round(n));
  return n < 999950 ? `${(n / 1000).toFixed(1)}k` : `${(n / 1e6).toFixed(1)}M`;
}

export const dollars = (usd) => (usd == null ? "–" : `$${usd.toFixed(2)}`);
/** The cost of a task: a lower bound if some calls were not reported. */
export const cost = (usage) => (usage?.cost_usd == null ? "–" : `${usage.unpriced_calls ? "≥ " : ""}${dollars(usage.cost_usd)}`);
export const bytes = (n) => (n < 1000 ? `${n} B` : n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`);
export const clock = (iso) => (iso ? new Date(iso).toLocaleTimeString([], { hour12: false }) : "–");
export const moment = (iso) => (iso ? new Date(iso).toLocaleString([], { hour12: false }) : "–");

export function tokens(usage) {
  const sum = ((usage || {}).input_tokens || 0) + ((usage || {}).output_tokens || 0);
  return sum ? `${usage.uncounted_takeovers ? "≥ " : ""}${count(sum)}` : "–";
}

/** Escape sequences have no place outside a log. */
export const plain = (text) => String(text ?? "").replace(/\x1b(\[[0-9;?]*[ -/]*[@-~]|[^[]?)/g, "");

const TONES = {
  running: "go", spawning: "go", completing: "go", stopping: "warn", waiting: "wait", queued: "quiet",
  interrupted: "ask", completed: "done", failed: "bad", abandoned: "bad", crashed: "bad", hung: "bad",
  timeout: "bad", killed: "quiet", unreadable: "bad",
};
export const tone = (state) => TONES[state] || "quiet";

export const State = ({ state }) => html`<span class="state tone-${tone(state)}"><i></i>${state}</span>`;

/** Seconds since the start, counting on while the task works. */
export function Elapsed({ row, at }) {
  if (row.state === "queued") return html`<span class="num">–</span>`;
  const base = row.elapsed_s || 0;
  const live = row.is_counting ? Math.max(0, (now.value - at) / 1000) : 0;
  return html`<span class="num">${duration(base + live)}</span>`;
}

export function Copy({ text, label }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); } catch { return; }
    setCopied(true);
    setTimeout(() => setCopied(false), 1200);
  };
  return html`<button type="button" class="copy" onClick=${copy} title="Copy" aria-label=${`Copy: ${text}`}>
    <code>${label || text}</code><span>${copied ? "copied" : "copy"}</span></button>`;
}

// ── dialogs and notices ──

export const dialog = signal(null);
export const notice = signal(null);
let noticeTimer = 0;

export function tell(text, kind = "info") {
  notice.value = { text, kind };
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => { notice.value = null; }, kind === "error" ? 10000 : 4000);
}

/** Ask for confirmation, with an optional message; resolves to null or { message }. */
export function confirm({ title, text, verb, field, danger }) {
  return new Promise((resolve) => { dialog.value = { title, text, verb, field, danger, resolve }; });
}

export function Dialogs() {
  const ref = useRef(null);
  const asked = dialog.value;
  useEffect(() => { if (asked && ref.current && !ref.current.open) ref.current.showModal(); }, [asked]);
  const close = (result) => { dialog.value = null; asked.resolve(result); };
  const submit = (event) => {
    event.preventDefault();
    const field = event.target.elements.message;
    close({ message: field ? field.value : "" });
  };
  return html`
    ${notice.value && html`<div class="notice ${notice.value.kind}" role="status">${notice.value.text}</div>`}
    ${asked && html`<dialog ref=${ref} onCancel=${(e) => { e.preventDefault(); close(null); }} aria-labelledby="dlg">
      <form onSubmit=${submit}>
        <h2 id="dlg">${asked.title}</h2>
        ${asked.text && html`<p>${asked.text}</p>`}
        ${asked.field && html`<label>${asked.field}<textarea name="message" rows="3" maxlength="30000"></textarea></label>`}
        <div class="row end">
          <button type="button" onClick=${() => close(null)}>Cancel</button>
          <button type="submit" class=${asked.danger ? "danger" : "primary"}>${asked.verb}</button>
        </div>
      </form></dialog>`}`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}
