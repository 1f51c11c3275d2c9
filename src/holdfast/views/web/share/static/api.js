// Stands for the server: every answer is in the file, or was left out of it.
import { signal } from "@preact/signals";
import { data } from "/data.js";

export const isIn = signal(true);
export const isReadOnly = signal(true);
export const connection = signal("idle");
export const enter = async () => {};

export class Refused extends Error {
  constructor(status, told) {
    super([told.error, ...(told.details || [])].filter(Boolean).join("\n"));
    this.status = status;
    this.hint = told.hint || "";
  }
}

const missing = () => new Refused(404, { error: "This is not in the file." });
const decoder = new TextDecoder();
let encoded = null;
const bytes = () => (encoded ??= new TextEncoder().encode(data.log.text));
const NEWLINE = 10;

/** Whole lines of the log, as the server gives them: from byte `begin`, before `end`, at a time, or the last ones. */
function windowOf(query) {
  const all = bytes(), size = all.length, limit = Number(query.get("limit")) || 65536;
  let begin, end;
  if (query.has("begin")) {
    begin = Math.min(Number(query.get("begin")) || 0, size);
    end = Math.min(begin + limit, size);
    const last = end < size ? all.lastIndexOf(NEWLINE, end - 1) + 1 : end;
    if (last > begin) end = last;
  } else {
    end = query.has("at") ? sizeAt(Date.parse(query.get("at"))) : query.has("end") ? Math.min(Number(query.get("end")), size) : size;
    begin = Math.max(0, end - limit);
    const first = begin > 0 ? all.indexOf(NEWLINE, begin) + 1 : 0;
    if (begin > 0 && first > 0 && first < end) begin = first;
  }
  return { begin, end, size, text: decoder.decode(all.subarray(begin, end)) };
}

/** How long the log was at a time; its whole length if that is unknown. */
function sizeAt(at) {
  if (!data.log.points.length) return bytes().length;
  let size = 0;
  for (const [when, end] of data.log.points) if (when <= at) size = end;
  return size;
}

function search(query) {
  const wanted = (query.get("text") || "").toLowerCase(), encoder = new TextEncoder();
  let at = 0;
  const lines = [];
  if (!wanted) return { lines, end: null };
  for (const text of data.log.text.split("\n")) {
    if (text.toLowerCase().includes(wanted) && lines.push({ at, text: text.slice(0, 2000) }) === 200) break;
    at += encoder.encode(text).length + 1;
  }
  return { lines, end: null };
}

const asked = (path) => {
  const { pathname, searchParams } = new URL(path, "http://file.invalid");
  return [decodeURIComponent(pathname.split("/")[4] || ""), searchParams];
};

function answer(path) {
  const [what, query] = asked(path);
  if (what === "log") return windowOf(query);
  if (what === "search") return search(query);
  if (what === "diff" && query.get("stage")) return data.stage_diffs[query.get("stage")];
  return data.answers[what];
}

export async function get(path) {
  const found = answer(path);
  if (!found) throw missing();
  if (found.error && !found.manifest) throw new Refused(404, found);
  return structuredClone(found);
}

export async function text(path) {
  const found = data.files[asked(path)[1].get("path")];
  if (found == null) throw missing();
  return found;
}

export const post = async () => { throw missing(); };

/** One message with all events; then nothing happens any more. */
export function stream(address, handlers) {
  const timer = setTimeout(() => handlers.journal?.({ end: 0, events: data.events }));
  return { from() {}, close() { clearTimeout(timer); } };
}
