// The readable log: the whole file by windows, followed at its end, searched by the server.
import { Component } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { html, bytes, plain, tell } from "/ui.js";
import { get } from "/api.js";
import { ansi } from "/ansi.js";

const MAX_LINES = 3000;
const encoder = new TextEncoder();

/** Lines with the byte at which each begins. */
function split(text, begin) {
  const lines = [];
  let at = begin;
  const pieces = text.split("\n");
  if (pieces.at(-1) === "") pieces.pop();
  for (const piece of pieces) {
    lines.push({ at, text: piece });
    at += encoder.encode(piece).length + 1;
  }
  return lines;
}

class Line extends Component {
  shouldComponentUpdate(next) { return next.line !== this.props.line || next.isMarked !== this.props.isMarked; }
  render({ line, isMarked, id }) {
    const kind = line.text.startsWith("--- attempt ") ? "attempt" : /^\[(error|result|stage|session|tool)/.exec(line.text)?.[1] || "";
    return html`<div class="line ${isMarked ? "marked" : ""} ${kind}"><a class="at" href=${`/task/${encodeURIComponent(id)}?tab=log&at=${line.at}`} aria-label=${`Link to byte ${line.at}`}>#</a><span>${ansi(line.text)}</span></div>`;
  }
}

/** The state of a log, kept by the page of the task: messages of the stream arrive while another tab is shown. */
export class Log {
  constructor(id, onChange) { this.id = id; this.onChange = onChange; this.lines = []; this.begin = 0; this.end = 0; this.size = 0; this.isAtEnd = true; this.marked = -1; this.jumps = 0; this.partial = false; this.until = Infinity; this.asked = 0; }
  path(query) { return `/api/tasks/${encodeURIComponent(this.id)}/log?${query}`; }
  take(found, before = null) { this.begin = (before || found).begin; this.end = found.end; this.size = Math.min(found.size, this.until); this.lines = [...(before ? split(before.text, before.begin) : []), ...split(found.text, found.begin)]; this.partial = found.text !== "" && !found.text.endsWith("\n"); this.onChange(); }
  /** The log as it was at a time: what came later is not loaded. */
  async toTime(iso) {
    const asked = ++this.asked;
    const found = await get(this.path(`at=${encodeURIComponent(iso)}&limit=65536`));
    if (asked !== this.asked) return; // the slider went on
    this.until = found.end;
    this.isAtEnd = true; this.marked = -1;
    this.take(found);
  }
  async toEnd() { this.asked++; this.take(await get(this.path("limit=65536"))); this.isAtEnd = true; this.marked = -1; this.onChange(); }
  /** Mark the line at a byte, and load what is around it. */
  async to(at) {
    const asked = ++this.asked;
    const found = await get(this.path(`begin=${at}&limit=${Math.min(65536, this.until - at)}`));
    const before = found.begin > 0 ? await get(this.path(`end=${found.begin}&limit=16384`)) : null;
    if (asked !== this.asked) return; // another line was asked for
    this.marked = at; this.jumps++;
    this.isAtEnd = found.end >= Math.min(found.size, this.until);
    // All lines at once: those that arrive above would move the marked one out of sight.
    this.take(found, before?.end === found.begin ? before : null);
  }
  async older(limit = 65536) {
    if (this.begin <= 0) return;
    const found = await get(this.path(`end=${this.begin}&limit=${limit}`));
    if (found.end !== this.begin && found.end > this.begin) return;
    this.lines = [...split(found.text, found.begin), ...this.lines];
    this.begin = found.begin;
    const cut = this.lines[MAX_LINES * 2];
    if (cut) { this.lines = this.lines.slice(0, MAX_LINES * 2); this.end = cut.at; this.isAtEnd = false; this.partial = false; }
    this.onChange();
  }
  async newer() {
    const found = await get(this.path(`begin=${this.end}&limit=${Math.min(65536, this.until - this.end)}`));
    this.append(found);
    this.isAtEnd = this.end >= this.size;
    this.onChange();
  }
  append(found) {
    const lines = split(found.text, found.begin);
    if (this.partial && lines.length && this.lines.length) {
      const last = this.lines.pop();
      lines[0] = { at: last.at, text: (last.text + lines[0].text).slice(0, 65536) };
    }
    this.lines = [...this.lines, ...lines];
    if (this.lines.length > MAX_LINES) { this.lines = this.lines.slice(-MAX_LINES); this.begin = this.lines[0].at; }
    this.end = found.end; this.size = Math.min(found.size, this.until); this.partial = found.text !== "" && !found.text.endsWith("\n");
  }
  /** New lines from the stream. */
  follow(found) {
    if (found.begin === this.end && this.isAtEnd && (this.marked < 0 || this.lines.length < MAX_LINES)) { this.append(found); this.onChange(); }
    else if (this.isAtEnd && this.marked < 0) this.toEnd();
    else { this.size = found.size; this.isAtEnd = false; this.onChange(); }
  }
}

export function LogView({ log, id, isEnded, onLeave }) {
  const box = useRef(null);
  const [isFollowing, setFollowing] = useState(log.marked < 0);
  const [query, setQuery] = useState("");
  const [hits, setHits] = useState(null);
  const { lines } = log;
  useEffect(() => { if (isFollowing && log.marked < 0 && box.current) box.current.scrollTop = box.current.scrollHeight; }, [lines, isFollowing]);
  useEffect(() => { if (log.marked >= 0) box.current?.querySelector(".marked")?.scrollIntoView({ block: "center" }); }, [log.jumps]);
  useEffect(() => {
    const onKey = (event) => { if (event.key === "f" && !event.ctrlKey && !event.metaKey && !event.target.matches?.("input, textarea, select")) follow(); };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
  const follow = async () => { if (onLeave) { onLeave(); return; } if (!log.isAtEnd || log.marked >= 0) await log.toEnd(); setFollowing(true); };
  const onScroll = async () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    const isEnd = scrollHeight - scrollTop - clientHeight < 24;
    const isAtEnd = isEnd && log.isAtEnd && log.marked < 0; // a marked line stays in sight
    if (isFollowing !== isAtEnd) setFollowing(isAtEnd);
    if (scrollTop < 40 && log.begin > 0 && !log.isLoading) {
      log.isLoading = true;
      const before = scrollHeight;
      try { await log.older(); } finally { log.isLoading = false; }
      requestAnimationFrame(() => { if (box.current) box.current.scrollTop += box.current.scrollHeight - before; });
    } else if (isEnd && !log.isAtEnd && !log.isLoading) {
      log.isLoading = true;
      try { await log.newer(); } finally { log.isLoading = false; }
    }
  };
  const search = async (event, begin = 0) => {
    event?.preventDefault();
    if (!query) { setHits(null); return; }
    const found = await get(`/api/tasks/${encodeURIComponent(id)}/search?text=${encodeURIComponent(query)}&begin=${begin}`).catch((error) => tell(error.message, "error"));
    if (!found) return;
    setHits(begin ? { lines: [...hits.lines, ...found.lines].slice(-1000), end: found.end } : found);
  };
  const show = (at) => { setFollowing(false); log.to(at).catch((error) => tell(error.message, "error")); };
  return html`<div class="log">
    <form class="bar" onSubmit=${search}>
      <input data-search type="search" placeholder="Search the whole log  /" aria-label="Search the log" value=${query} onInput=${(e) => { setQuery(e.target.value); if (!e.target.value) setHits(null); }} />
      <button type="submit">Search</button><span class="grow"></span>
      <span class="quiet num">${bytes(log.size)}</span>
      <button type="button" onClick=${() => show(0)}>Begin</button>
      <button type="button" aria-pressed=${isFollowing} onClick=${follow}>${onLeave ? "Leave the replay" : isEnded ? "End" : isFollowing ? "Following" : "Follow"}</button>
    </form>
    ${hits && html`<div class="hits"><p class="quiet">${hits.lines.length ? `${hits.lines.length} lines` : "No line has this text"}${hits.end != null && html` <button type="button" onClick=${(e) => search(e, hits.end)}>More</button>`}</p>
      <ol>${hits.lines.map((hit) => html`<li><button type="button" onClick=${() => show(hit.at)}>${plain(hit.text).slice(0, 300)}</button></li>`)}</ol></div>`}
    <div class="lines" ref=${box} onScroll=${onScroll} tabindex="0" role="log" aria-label="Output" aria-live="off">
      ${log.begin > 0 && html`<p class="quiet pad">Scroll up for more</p>`}
      ${lines.length === 0 && html`<p class="quiet pad">No output yet</p>`}
      ${lines.map((line) => html`<${Line} key=${line.at} id=${id} line=${line} isMarked=${line.at === log.marked} />`)}
    </div></div>`;
}
