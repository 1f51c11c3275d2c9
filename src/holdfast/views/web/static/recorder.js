// The flight recorder: a lane per stage on a time axis, with attempts, marks, folded gaps and the live edge.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html, duration, clock, moment, plain, now } from "/ui.js";

const LEFT = 132, RIGHT = 20, LANE = 40, MARKS = 34, AXIS = 26, FOLD = 46, GHOST = 88;
const MARK = {
  crash: ["✕", "bad", "crash"], hang: ["◼", "bad", "hang"], resume: ["↻", "go", "resumed"], adopt: ["⇄", "warn", "taken over by a new runner"],
  sweep: ["⌫", "quiet", "swept"], limit: ["▲", "warn", "limit"], gate: ["◆", "done", "gate"], request: ["●", "ask", "request"],
  takeover: ["☻", "ask", "takeover by a person"],
};

export function words(mark) {
  const parts = [MARK[mark.kind]?.[2] || mark.kind];
  if (mark.kind === "resume" && mark.after_s != null) parts.push(`${duration(mark.after_s)} after the end`);
  if (mark.kind === "adopt" && mark.gap_s != null) parts.push(`after ${duration(mark.gap_s)}`);
  if (mark.kind === "sweep") parts.push(`${mark.killed} processes ended`);
  if (mark.kind === "gate") parts.push(mark.passed ? `${mark.stage}: passed` : `${mark.stage}: refused by ${mark.failed}`);
  if (mark.kind === "request") parts.push(`${mark.verb}${mark.by ? ` by ${mark.by}` : ""}${mark.refused ? " (refused)" : ""}`);
  if (mark.kind === "limit" && mark.limit) parts.push(mark.limit);
  if (mark.kind === "takeover") parts.push(`${String(mark.how).replace("_", " ")}${mark.by ? ` by ${mark.by}` : ""}`);
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

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400].map((s) => s * 1000);

function ticks(map) {
  const found = [];
  for (const piece of map.pieces) {
    if (piece.isFolded || piece.width < 60) continue;
    const step = STEPS.find((each) => (each / (piece.to - piece.from)) * piece.width >= 84) || STEPS.at(-1);
    for (let at = Math.ceil(piece.from / step) * step; at < piece.to; at += step) found.push([at, map.x(at)]);
  }
  return found;
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
  const room = width - LEFT - RIGHT - (hasGhosts ? GHOST : 0);
  const busy = [
    ...spans.filter((span) => span.kind === "attempt" || span.kind === "chore").map((span) => [ms(span.begin), span.end ? ms(span.end) : live || end]),
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
  let lastX = -99;
  return html`<section class="card recorder" aria-label="History">
    <header class="row"><h2>Flight recorder</h2><span class="grow"></span>
      <span class="legend">${Object.entries(MARK).filter(([kind]) => marks.some((mark) => mark.kind === kind)).map(([, [glyph, tone, name]]) => html`<span class="tone-${tone}"><b>${glyph}</b>${name}</span>`)}</span>
      ${zoom && html`<button type="button" onClick=${() => setZoom(null)}>Show everything</button>`}</header>
    <div class="lanes" ref=${box}>
    <svg width=${width} height=${height} role="img" aria-label=${`History with ${spans.length} spans and ${marks.length} marks; the list below has them as text`}
      onPointerDown=${onDown} onPointerMove=${onMove} onPointerUp=${onUp} onDblClick=${() => setZoom(null)}>
      ${lanes.map((stage, at) => html`<g key=${`lane-${stage}`}>
        <rect class="lane ${at % 2 ? "odd" : ""}" x="0" y=${MARKS + at * LANE} width=${width} height=${LANE} />
        <text class="stage ${pending.includes(stage) ? "pending" : ""}" x="10" y=${MARKS + at * LANE + 24}>${plain(stage).slice(0, 17)}<title>${plain(stage)}</title></text></g>`)}
      ${ticks(map).map(([at, place]) => html`<g key=${`tick-${at}`} class="tick"><line x1=${LEFT + place} x2=${LEFT + place} y1=${MARKS} y2=${height - AXIS} /><text x=${LEFT + place} y=${height - 8}>${clock(new Date(at).toISOString())}</text></g>`)}
      ${spans.filter((span) => ["wait", "interrupt", "queue"].includes(span.kind)).map((span) => {
        const from = ms(span.begin), to = span.end ? ms(span.end) : live || end;
        return inside(from, to) && html`<rect key=${`band-${span.begin}`} class="band ${span.kind}" x=${x(from)} y=${MARKS - 6} width=${Math.max(2, x(to) - x(from))} height=${lanes.length * LANE + 6}>
          <title>${span.kind} ${duration((to - from) / 1000)}: ${plain(span.reason)}</title></rect>`;
      })}
      ${map.pieces.filter((piece) => piece.isFolded).map((piece) => html`<g key=${`fold-${piece.from}`} class="fold">
        <rect x=${LEFT + piece.x + 3} y=${MARKS} width=${piece.width - 6} height=${lanes.length * LANE} rx="4" />
        <text x=${LEFT + piece.x + piece.width / 2} y=${height - 8}>${duration((piece.to - piece.from) / 1000).replace(/ \d\d? [ms]$/, "")}</text></g>`)}
      ${spans.filter((span) => span.stage).map((span) => {
        const from = ms(span.begin), to = span.end ? ms(span.end) : live || end;
        if (!inside(from, to)) return null;
        const w = Math.max(3, x(to) - x(from)), isChore = span.kind === "chore";
        const outcome = span.end ? span.outcome || "ended" : "running";
        const told = `${isChore ? span.chore : `attempt ${span.attempt} (${span.mode})`}: ${outcome}, ${duration((to - from) / 1000)}\n${moment(span.begin)} – ${span.end ? clock(span.end) : "now"}`;
        return html`<g key=${`span-${span.attempt}`} class="span ${isChore ? "chore" : ""} outcome-${outcome}" onClick=${() => !isChore && onAttempt?.(span.attempt)}>
          <rect x=${x(from)} y=${top(span.stage) + (isChore ? 27 : 8)} width=${w} height=${isChore ? 7 : 24} rx=${isChore ? 2 : 5}><title>${told}</title></rect>
          ${!isChore && w > 26 && html`<text x=${x(from) + 7} y=${top(span.stage) + 25}>${w > 110 ? `${span.attempt} · ${outcome}` : span.attempt}</text>`}</g>`;
      })}
      ${hasGhosts && pending.map((stage) => html`<rect key=${`ghost-${stage}`} class="ghost" x=${width - RIGHT - GHOST + 10} y=${top(stage) + 8} width=${GHOST - 10} height="24" rx="5"><title>${plain(stage)} has not begun</title></rect>`)}
      ${isLive && !zoom && html`<g class="edge"><line x1=${x(live)} x2=${x(live)} y1=${MARKS - 12} y2=${height - AXIS} /><circle cx=${x(live)} cy=${MARKS - 12} r="4" /></g>`}
      ${marks.filter((mark) => inside(ms(mark.at), ms(mark.at))).map((mark, at) => {
        const place = x(ms(mark.at)), isClose = place - lastX < 13;
        lastX = place;
        const [glyph, tone] = MARK[mark.kind] || ["·", "quiet"];
        const real = mark.kind === "gate" && !mark.passed ? "bad" : tone;
        return html`<g key=${`mark-${at}`} class="mark tone-${real}"><line x1=${place} x2=${place} y1="22" y2=${height - AXIS} />
          <text x=${place} y=${isClose ? 12 : 22}>${glyph}<title>${words(mark)}\n${moment(mark.at)}</title></text></g>`;
      })}
      ${at != null && inside(at, at) && html`<g class="cursor"><line x1=${x(at)} x2=${x(at)} y1="4" y2=${height - AXIS} /></g>`}
      ${drag && html`<rect class="brush" x=${LEFT + Math.min(...drag)} y="0" width=${Math.abs(drag[1] - drag[0])} height=${height - AXIS} />`}
    </svg>
    ${onAt && html`<input type="range" class="slider" aria-label="Replay: show the task as it was" aria-valuetext=${at == null ? "now" : moment(new Date(at).toISOString())}
      min="0" max=${Math.round(room)} step="1" value=${at == null ? Math.round(room) : Math.round(map.x(Math.min(Math.max(at, begin), end)))}
      onInput=${(event) => { const place = Number(event.target.value); onAt(place >= Math.round(room) && !zoom ? null : Math.round(map.time(place))); }} />`}</div>
    <details class="moments"><summary>${marks.length} moments as a list</summary><ol>${marks.slice(-500).map((mark) => html`<li><time>${moment(mark.at)}</time> ${words(mark)}</li>`)}</ol></details>
  </section>`;
}
