// Text with colours of a terminal as DOM nodes. Everything but colours and weight is dropped.
import { html } from "/ui.js";

const SEQUENCE = /\x1b(?:\[([0-9;:]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_]|.)?/g;

function apply(style, codes) {
  const list = codes === "" ? [0] : codes.split(/[;:]/).map(Number);
  const next = { ...style };
  for (let at = 0; at < list.length; at++) {
    const code = list[at];
    if (code === 0) { next.fg = next.bg = null; next.bold = next.dim = next.italic = next.under = false; }
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.under = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.under = false;
    else if (code >= 30 && code <= 37) next.fg = code - 30;
    else if (code >= 90 && code <= 97) next.fg = code - 82;
    else if (code === 39) next.fg = null;
    else if (code >= 40 && code <= 47) next.bg = code - 40;
    else if (code === 49) next.bg = null;
    else if (code === 38 || code === 48) {
      // Of 256 colours and true colours, the first 16 are shown.
      if (list[at + 1] === 5) { if (code === 38) next.fg = list[at + 2] < 16 ? list[at + 2] : null; at += 2; }
      else if (list[at + 1] === 2) at += 4;
    }
  }
  return next;
}

const classes = (style) => [
  style.fg != null && `fg${style.fg}`, style.bg != null && `bg${style.bg}`, style.bold && "bold", style.dim && "dim", style.italic && "italic", style.under && "under",
].filter(Boolean).join(" ");

export function ansi(text) {
  if (!text.includes("\x1b")) return text;
  const nodes = [];
  let style = {}, from = 0;
  const push = (piece) => { if (piece) nodes.push(classes(style) ? html`<span class=${classes(style)}>${piece}</span>` : piece); };
  for (const found of text.matchAll(SEQUENCE)) {
    push(text.slice(from, found.index));
    from = found.index + found[0].length;
    if (found[2] === "m") style = apply(style, found[1]);
  }
  push(text.slice(from));
  return nodes;
}
