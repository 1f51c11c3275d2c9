// The flight recorder: a lane per stage on a time axis, with attempts, marks, folded gaps and the live edge.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html, duration, clock, moment, plain, now } from "/ui.js";

const RIGHT = 20, LANE = 40, MARKS = 44, AXIS = 26, FOLD = 46, GHOST = 88;
/** Below this width, the names of stages get less room. The slider in pages.css has the same numbers. */
const NARROW = 560;
const BANDS = { wait: "waiting", interrupt: "needs a person", queue: "queued" };
const MARK = {
  crash: ["✕", "bad", "crash"], hang: ["◼", "bad", "hang"], resume: ["↻", "go", "resumed"], adopt: ["⇄", "warn", "taken over by a new runner"],
  sweep: ["⌫", "quiet", "swept"], limit: ["▲", "warn", "limit"], gate: ["◆", "done", "gate"], request: ["●", "ask", "request"],
  takeover: ["☻", "ask", "takeover by a person"], question: ["?", "ask", "question"],
};

const LEVELS = 3, NEAR = 13;
/** Marks, each [mark, place], that are close to each other go above each other. Those for which there is no room are `more` of the topmost. */
export function stack(marks) {
  const last = Array(LEVELS).fill(-Infinity), shown = [];
  for (const [mark, place] of marks) {
    const level = last.findIndex((each) => place - each >= NEAR);
    if (level < 0) { shown.findLast((each) => each.level === LEVELS - 1).more.push(mark); continue; }
    last[level] = place;
    shown.push({ mark, place, level, more: [] });
  }
  return shown;
}

export const takeoverEnd = (how) => ({ handed_back: "handed back", kept: "ended", lost: "lost", began: "began" })[how] || "ended";

export function words(mark) {
  const parts = [MARK[mark.kind]?.[2] || mark.kind];
  if (mark.kind === "crash" && mark.noticed_s != null) parts.push(`noticed after ${duration(mark.noticed_s)}`);
  if (mark.kind === "hang" && mark.silent_s != null) parts.push(`silent for ${duration(mark.silent_s)}`);
  if (mark.kind === "resume" && (mark.healed_s ?? mark.after_s) != null) parts.push(`${duration(mark.healed_s ?? mark.after_s)} after the end`);
  if (mark.kind === "question") parts.push(mark.answered_s != null ? `answered after ${duration(mark.answered_s)}` : "open");
  if (mark.kind === "adopt" && mark.gap_s != null) parts.push(`after ${duration(mark.gap_s)}`);
  if (mark.kind === "sweep") parts.push(`${mark.killed} processes ended`);
  if (mark.kind === "gate") parts.push(mark.passed ? `${mark.stage}: passed${mark.took_s != null ? ` after ${duration(mark.took_s)}` : ""}` : `${mark.stage}: refused by ${mark.failed}`);
  if (mark.kind === "request") parts.push(`${mark.verb}${mark.by ? ` by ${mark.by}` : ""}${mark.refused ? " (refused)" : ""}`);
  if (mark.kind === "limit" && mark.limit) parts.push(mark.limit);
  if (mark.kind === "takeover") parts.push(`${takeoverEnd(mark.how)}${mark.by ? ` by ${mark.by}` : ""}${mark.files ? `, ${mark.files} files changed` : ""}`);
  if (mark.detail) parts.push(mark.detail);
  return plain(parts.join(": "));
}

/** Pieces of time, each with its place: what is longer than needed and empty is folded. */
export function scale(begin, end, busy, width) {
  const merged = [];
  for (const [from, to] of [...busy].sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  const active = merged.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, end) - Math.max(from, begin)), 0);
  const longest = Math.max(30000, active * 0.35);
  const pieces = [];
  let at = begin;
  const add = (from, to, isBusy) => {
    if (to > from) pieces.push({ from, to, isFolded: !isBusy && to - from > longest });
  };
  for (const [from, to] of merged) {
    if (to <= begin || from >= end) continue;
    add(at, Math.max(at, from), false);
    add(Math.max(at, from), Math.min(to, end), true);
    at = Math.max(at, Math.min(to, end));
  }
  add(at, end, false);
  const folds = pieces.filter((piece) => piece.isFolded).length;
  const total = pieces.reduce((sum, piece) => sum + (piece.isFolded ? 0 : piece.to - piece.from), 0) || 1;
  const room = Math.max(40, width - folds * FOLD);
  let x = 0;
  for (const piece of pieces) {
    piece.x = x;
    piece.width = piece.isFolded ? FOLD : (room * (piece.to - piece.from)) / total;
    x += piece.width;
  }
  return {
    pieces,
    x(time) {
      if (!pieces.length || time <= pieces[0].from) return 0;
      for (const piece of pieces) if (time <= piece.to) return piece.x + (piece.width * Math.max(0, time - piece.from)) / (piece.to - piece.from);
      return x;
    },
    time(place) {
      for (const piece of pieces) if (place <= piece.x + piece.width) return piece.from + ((piece.to - piece.from) * Math.max(0, place - piece.x)) / piece.width;
      return end;
    },
  };
}

/** `40 s`, `12 m`, `2 h`: a gap is as long as it says, give or take a half. */
const rounded = (s) => (s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} m` : s < 129600 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} d`);

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400].map((s) => s * 1000);

function ticks(map) {
  const found = [];
  for (const piece of map.pieces) {
    if (piece.isFolded || piece.width < 60) continue;
    const step = STEPS.find((each) => (each / (piece.to - piece.from)) * piece.width >= 84) || STEPS.at(-1);
    for (let at = Math.ceil(piece.from / step) * step; at < piece.to; at += step) found.push([at, map.x(at)]);
  }
  // On a phone, or in a short task, there may be one at most: then the ends.
  const all = found.length > 1 || !map.pieces.length ? found : [map.pieces[0].from, map.pieces.at(-1).to].map((at) => [at, map.x(at)]);
  // No time is written over the one before.
  let last = -Infinity;
  return all.filter(([, place]) => place - last >= 56 && ((last = place), true));
}

/** `at`: the moment that is replayed, in ms; null for the present. `onAt` is told another one. */
export function Recorder({ detail, onAttempt, at = null, onAt }) {
  const box = useRef(null);
  const [width, setWidth] = useState(900);
  const [zoom, setZoom] = useState(null);
  const [drag, setDrag] = useState(null);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(320, entry.contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const { spans, marks } = detail.timeline;
  const isLive = !detail.manifest.finished_at;
  const live = isLive ? now.value : 0;
  const ms = (iso) => Date.parse(iso);
  const lanes = useMemo(() => {
    const names = (detail.stages || []).map((stage) => stage.name);
    for (const span of spans) if (span.stage && !names.includes(span.stage)) names.push(span.stage);
    return names;
  }, [detail]);
  const times = [...spans.flatMap((span) => [ms(span.begin), span.end ? ms(span.end) : live]), ...marks.map((mark) => ms(mark.at)), live].filter(Boolean);
  const begin = zoom ? zoom[0] : Math.min(...times), end = zoom ? zoom[1] : Math.max(...times, begin + 1000);
  const pending = (detail.stages || []).filter((stage) => stage.state === "pending").map((stage) => stage.name);
  const hasGhosts = isLive && !zoom && pending.length > 0;
  const isNarrow = width < NARROW, LEFT = isNarrow ? 112 : 132;
  const room = width - LEFT - RIGHT - (hasGhosts ? GHOST : 0);
  // The text of a tick stays within the picture.
  const tickText = (place) => Math.min(LEFT + place, width - 28);
  const busy = [
    ...spans.filter((span) => ["attempt", "chore", "takeover"].includes(span.kind)).map((span) => [ms(span.begin), span.end ? ms(span.end) : live || end]),
    ...marks.map((mark) => [ms(mark.at) - 200, ms(mark.at) + 200]),
  ];
  const map = scale(begin, end, busy, room);
  const x = (time) => LEFT + map.x(Math.min(Math.max(time, begin), end));
  const height = MARKS + lanes.length * LANE + AXIS;
  const inside = (from, to) => to >= begin && from <= end;
  const top = (stage) => MARKS + lanes.indexOf(stage) * LANE;
  const placeOf = (event) => event.clientX - box.current.getBoundingClientRect().left - LEFT;
  const onDown = (event) => { if (event.button === 0 && placeOf(event) > 0) { setDrag([placeOf(event), placeOf(event)]); event.currentTarget.setPointerCapture?.(event.pointerId); } };
  const onMove = (event) => { if (drag) setDrag([drag[0], placeOf(event)]); };
  const onUp = () => {
    if (drag && Math.abs(drag[1] - drag[0]) > 12) {
      const [a, b] = [...drag].sort((one, other) => one - other);
      setZoom([map.time(a), map.time(b)]);
    }
    setDrag(null);
  };
  const hasChores = spans.some((span) => span.kind === "chore");
  return html`<section class="card recorder" aria-label="History">
    <header class="row"><h2>Flight recorder</h2><span class="grow"></span>
      <span class="legend">${hasChores && html`<span class="bar-of"><i></i>checks and preparation</span>`}${Object.entries(BANDS).filter(([kind]) => spans.some((span) => span.kind === kind)).map(([kind, name]) => html`<span class="band-of ${kind}"><i></i>${name}</span>`)}${Object.entries(MARK).filter(([kind]) => marks.some((mark) => mark.kind === kind)).map(([, [glyph, tone, name]]) => html`<span class="tone-${tone}"><b>${glyph}</b>${name}</span>`)}</span>
      ${zoom && html`<button type="button" onClick=${() => setZoom(null)}>Show everything</button>`}</header>
    <div class="lanes ${isNarrow ? "narrow" : ""}" ref=${box}>
    <svg width=${width} height=${height} role="img" aria-label=${`History with ${spans.length} spans and ${marks.length} marks; the list below has them as text`}
      onPointerDown=${onDown} onPointerMove=${onMove} onPointerUp=${onUp} onDblClick=${() => setZoom(null)}>
      ${lanes.map((stage, at) => html`<g key=${`lane-${stage}`}>
        <rect class="lane ${at % 2 ? "odd" : ""}" x="0" y=${MARKS + at * LANE} width=${width} height=${LANE} />
        <text class="stage ${pending.includes(stage) ? "pending" : ""}" x="10" y=${MARKS + at * LANE + 24}>${plain(stage).slice(0, isNarrow ? 16 : 17)}<title>${plain(stage)}</title></text></g>`)}
      ${ticks(map).map(([at, place]) => html`<g key=${`tick-${at}`} class="tick"><line x1=${LEFT + place} x2=${LEFT + place} y1=${MARKS} y2=${height - AXIS} /><text x=${tickText(place)} y=${height - 8}>${clock(new Date(at).toISOString())}</text></g>`)}
      ${spans.filter((span) => ["wait", "interrupt", "queue"].includes(span.kind)).map((span) => {
        const from = ms(span.begin), to = span.end ? ms(span.end) : live || end;
        const wide = Math.max(2, x(to) - x(from)), lasted = duration((to - from) / 1000);
        return inside(from, to) && html`<g key=${`band-${span.begin}`} class="band ${span.kind}"><rect x=${x(from)} y=${MARKS - 6} width=${wide} height=${lanes.length * LANE + 6}>
          <title>${BANDS[span.kind]} ${lasted}: ${plain(span.reason)}</title></rect>
          ${wide > 130 && html`<text x=${x(from) + wide / 2} y=${MARKS - 12}>${BANDS[span.kind]} ${lasted}</text>`}</g>`;
      })}
      ${map.pieces.filter((piece) => piece.isFolded).map((piece) => html`<g key=${`fold-${piece.from}`} class="fold">
        <rect x=${LEFT + piece.x + 3} y=${MARKS} width=${piece.width - 6} height=${lanes.length * LANE} rx="4" />
        <text x=${LEFT + piece.x + piece.width / 2} y=${MARKS + (lanes.length * LANE) / 2 + 4}>${rounded((piece.to - piece.from) / 1000)}</text></g>`)}
      ${spans.filter((span) => span.stage).map((span) => {
        const from = ms(span.begin), to = span.end ? ms(span.end) : live || end;
        if (!inside(from, to)) return null;
        const w = Math.max(3, x(to) - x(from)), isChore = span.kind === "chore";
        const isTaken = span.kind === "takeover";
        const outcome = isTaken ? (span.end ? takeoverEnd(span.outcome) : "now") : span.end ? span.outcome || "ended" : "running";
        const told = `${isTaken ? `a person in its session${span.by ? ` (${plain(span.by)})` : ""}` : isChore ? span.chore : `attempt ${span.ordinal} (${span.mode})`}: ${outcome}, ${duration((to - from) / 1000)}\n${moment(span.begin)} – ${span.end ? clock(span.end) : "now"}`;
        return html`<g key=${`span-${span.attempt}`} class="span ${isChore ? "chore" : ""} ${isTaken ? "takeover" : `outcome-${outcome}`}" onClick=${() => !isChore && onAttempt?.(span.attempt)}>
          <rect x=${x(from)} y=${top(span.stage) + (isChore ? 27 : 8)} width=${w} height=${isChore ? 7 : 24} rx=${isChore ? 2 : 5}><title>${told}</title></rect>
          ${!isChore && w > 26 && html`<text x=${x(from) + 7} y=${top(span.stage) + 25}>${isTaken ? (w > 110 ? `☻ ${outcome}` : "☻") : w > 110 ? `${span.ordinal} · ${outcome}` : span.ordinal}</text>`}</g>`;
      })}
      ${hasGhosts && pending.map((stage) => html`<rect key=${`ghost-${stage}`} class="ghost" x=${width - RIGHT - GHOST + 10} y=${top(stage) + 8} width=${GHOST - 10} height="24" rx="5"><title>${plain(stage)} has not begun</title></rect>`)}
      ${isLive && !zoom && html`<g class="edge"><line x1=${x(live)} x2=${x(live)} y1=${MARKS - 12} y2=${height - AXIS} /><circle cx=${x(live)} cy=${MARKS - 12} r="4" /></g>`}
      ${stack(marks.filter((mark) => inside(ms(mark.at), ms(mark.at))).map((mark) => [mark, x(ms(mark.at))])).map(({ mark, place, level, more }, at) => {
        const [glyph, tone] = more.length ? [`+${more.length + 1}`, "quiet"] : MARK[mark.kind] || ["·", "quiet"];
        const real = mark.kind === "gate" && !mark.passed && !more.length ? "bad" : tone;
        return html`<g key=${`mark-${at}`} class="mark tone-${real}"><line x1=${place} x2=${place} y1=${MARKS - 12} y2=${height - AXIS} />
          <text x=${place} y=${MARKS - 12 - level * 11}>${glyph}<title>${[mark, ...more].map((each) => `${words(each)}\n${moment(each.at)}`).join("\n")}</title></text></g>`;
      })}
      ${at != null && inside(at, at) && html`<g class="cursor"><line x1=${x(at)} x2=${x(at)} y1="4" y2=${height - AXIS} /></g>`}
      ${drag && html`<rect class="brush" x=${LEFT + Math.min(...drag)} y="0" width=${Math.abs(drag[1] - drag[0])} height=${height - AXIS} />`}
    </svg>
    ${onAt && html`<input type="range" class="slider" aria-label="Replay: show the task as it was" aria-valuetext=${at == null ? "now" : moment(new Date(at).toISOString())}
      min="0" max=${Math.round(room)} step="1" value=${at == null ? Math.round(room) : Math.round(map.x(Math.min(Math.max(at, begin), end)))}
      onInput=${(event) => { const place = Number(event.target.value); onAt(place >= Math.round(room) && !zoom ? null : Math.round(map.time(place))); }} />`}</div>
    ${marks.length > 0 && html`<details class="moments"><summary>${marks.length === 1 ? "1 moment" : `${marks.length} moments`} as a list</summary><ol>${marks.slice(-500).map((mark) => html`<li><time>${moment(mark.at)}</time> ${words(mark)}</li>`)}</ol></details>`}
  </section>`;
}
