// Requests to the server. The bearer is in this tab alone: no cookie, nothing in an address.
import { signal } from "@preact/signals";
import { setServerTime } from "/ui.js";

const KEY = "holdfast.bearer";
const READ_ONLY = "holdfast.read-only";
let bearer = sessionStorage.getItem(KEY) || "";
export const isIn = signal(Boolean(bearer));
export const isReadOnly = signal(sessionStorage.getItem(READ_ONLY) === "1");
/** live, lost, or idle: whether changes arrive. */
export const connection = signal("idle");

const channel = new BroadcastChannel("holdfast");

async function exchange(token) {
  const answer = await fetch("/api/session", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }),
  });
  if (!answer.ok) return false;
  const found = await answer.json();
  bearer = found.bearer;
  sessionStorage.setItem(KEY, bearer);
  sessionStorage.setItem(READ_ONLY, found.is_read_only ? "1" : "0");
  isReadOnly.value = found.is_read_only;
  isIn.value = true;
  return true;
}

/** Use the token of the address, or ask another tab of this server for one. */
export async function enter() {
  const token = location.hash.slice(1);
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    if (await exchange(token)) return;
  }
  if (!bearer) {
    const given = await new Promise((resolve) => {
      const own = `${Date.now()}-${Math.random()}`;
      const listen = (event) => {
        if (event.data?.kind === "token" && event.data.to === own) { channel.removeEventListener("message", listen); resolve(event.data.token); }
      };
      channel.addEventListener("message", listen);
      channel.postMessage({ kind: "ask", from: own });
      setTimeout(() => resolve(""), 1500);
    });
    if (given) await exchange(given);
  }
}

channel.addEventListener("message", async (event) => {
  if (event.data?.kind !== "ask" || !bearer) return;
  const found = await post("/api/token", {}).catch(() => null);
  if (found) channel.postMessage({ kind: "token", to: event.data.from, token: found.token });
});

export class Refused extends Error {
  constructor(status, told) {
    super([told.error, ...(told.details || [])].filter(Boolean).join("\n"));
    this.status = status;
    this.hint = told.hint || "";
    this.problems = told.problems || {};
  }
}

async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${bearer}`, ...(options.headers || {}) };
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) leave();
  if (!answer.ok) throw new Refused(answer.status, await answer.json().catch(() => ({ error: answer.statusText })));
  return answer;
}

function leave() {
  bearer = "";
  sessionStorage.removeItem(KEY);
  isIn.value = false;
}

export async function get(path) {
  const found = await (await ask(path)).json();
  if (found.at) setServerTime(found.at);
  return found;
}
export const text = async (path) => (await ask(path)).text();
export const post = async (path, body) => (await ask(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
})).json();

// A browser opens six connections to a server, for all tabs together: four of them may be streams. Further tabs
// load their data again now and then, until one of the four is free.
const SLOTS = 4, AGAIN_MS = 3000;

/** A function that gives the slot back; null if all are in use. */
async function slot() {
  if (!navigator.locks) return () => {};
  for (let number = 0; number < SLOTS; number++) {
    const release = await new Promise((resolve) => {
      navigator.locks.request(`holdfast-stream-${number}`, { ifAvailable: true }, (lock) => {
        if (!lock) { resolve(null); return undefined; }
        return new Promise((free) => resolve(free));
      });
    });
    if (release) return release;
  }
  return null;
}

/** One stream of messages, closed while the tab is hidden, and opened again after the last event that was seen. */
export function stream(address, handlers) {
  let last = "", controller = null, isClosed = false, pause_ms = 300, timer = 0;

  async function connect() {
    clearTimeout(timer);
    if (isClosed || document.hidden || controller || !isIn.value) return;
    const own = controller = new AbortController();
    const release = await slot();
    if (own.signal.aborted || isClosed) { release?.(); return; }
    if (!release) {
      controller = null;
      connection.value = "slow";
      handlers.again?.({});
      timer = setTimeout(connect, AGAIN_MS);
      return;
    }
    try {
      const headers = last ? { "Last-Event-ID": last } : {};
      const answer = await ask(address(), { signal: own.signal, headers });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let buffer = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done || own.signal.aborted) break;
        buffer += value;
        let end;
        while ((end = buffer.indexOf("\n\n")) >= 0) {
          take(buffer.slice(0, end));
          buffer = buffer.slice(end + 2);
        }
      }
    } catch (error) {
      if (error instanceof Refused && error.status === 404) isClosed = true;
    } finally {
      release();
    }
    if (controller === own) controller = null;
    if (isClosed || own.signal.aborted) return;
    connection.value = "lost";
    timer = setTimeout(connect, pause_ms);
    pause_ms = Math.min(pause_ms * 2, 5000);
  }

  function take(block) {
    let kind = "", id = "", data = "";
    for (const line of block.split("\n")) {
      if (line.startsWith("event: ")) kind = line.slice(7);
      else if (line.startsWith("id: ")) id = line.slice(4);
      else if (line.startsWith("data: ")) data = line.slice(6);
    }
    if (!kind) return;
    if (kind === "hello") { connection.value = "live"; pause_ms = 300; setServerTime(JSON.parse(data).at); }
    handlers[kind]?.(JSON.parse(data));
    if (id) last = id;
  }

  function onVisibility() {
    if (document.hidden) { controller?.abort(); controller = null; connection.value = "idle"; }
    else connect();
  }
  document.addEventListener("visibilitychange", onVisibility);
  connect();
  return {
    /** Begin after this event. */
    from(id) { last = id; },
    close() {
      isClosed = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisibility);
      controller?.abort();
    },
  };
}
