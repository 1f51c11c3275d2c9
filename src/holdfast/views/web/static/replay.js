// A task as it was at a moment: state, stage, attempt, tokens and cost. Moments are given, oldest first.
import { html, State, clock, count, dollars, duration, moment, plain } from "/ui.js";

/** The moment that holds at a time: the last one that is not later; null before the first. */
export function momentAt(moments, at) {
  let low = 0, high = moments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Date.parse(moments[middle].at) <= at) low = middle + 1; else high = middle;
  }
  return moments[low - 1] || null;
}

/** The next time at which state, stage or attempt changed, after (1) or before (-1) a time; null if there is none. */
export function neighbour(moments, at, direction) {
  const isChange = (each, index) => {
    const last = moments[index - 1];
    return !last || last.state !== each.state || last.stage !== each.stage || last.attempt !== each.attempt;
  };
  const times = moments.filter(isChange).map((each) => Date.parse(each.at));
  return direction > 0 ? times.find((time) => time > at) ?? null : times.findLast((time) => time < at) ?? null;
}

export function ReplayFacts({ moments, attempts, at, begin, onAt }) {
  const found = momentAt(moments, at);
  // Moments have the number of the execution: a check or a preparation is no attempt.
  const ordinal = attempts.findLast((each) => each.ordinal && each.number <= (found?.attempt ?? 0))?.ordinal;
  const to = (direction) => { const time = neighbour(moments, at, direction); if (time != null) onAt(time); };
  const used = found && (found.input_tokens != null || found.output_tokens != null) ? (found.input_tokens || 0) + (found.output_tokens || 0) : null;
  return html`<div class="replay row wrap" role="group" aria-label="Replay">
    <button type="button" onClick=${() => to(-1)} aria-label="Previous change">◀</button>
    <button type="button" onClick=${() => to(1)} aria-label="Next change">▶</button>
    <b title=${moment(new Date(at).toISOString())}>${clock(new Date(at).toISOString())}</b><small class="quiet">${duration((at - begin) / 1000)} after the start</small>
    ${found ? html`<${State} state=${found.state} />
      <span><small>stage</small> ${plain(found.stage ?? "–")}</span><span><small>attempt</small> ${ordinal ?? "–"}</span>
      <span><small>tokens</small> <span class="num">${count(used)}</span></span><span><small>cost</small> <span class="num">${dollars(found.cost_usd)}</span></span>
      ${found.reason && html`<span class="quiet">${plain(found.reason)}</span>`}` : html`<span class="quiet">not created yet</span>`}
    <span class="grow"></span><button type="button" onClick=${() => onAt(null)}>Leave the replay</button></div>`;
}
