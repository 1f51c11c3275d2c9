// The page of one task.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html, State, Elapsed, Copy, confirm, tell, tokens, cost, plain, moment, serverNow, Empty } from "/ui.js";
import { get, post, stream, isReadOnly } from "/api.js";
import { Recorder } from "/recorder.js";
import { Log, LogView } from "/log.js";
import { Diff } from "/diff.js";
import { Budgets, Chart } from "/usage.js";
import { Attempts, Events, Files, Gates } from "/panels.js";
import { Markdown } from "/markdown.js";
import { ReplayFacts } from "/replay.js";

const TABS = [["log", "Log"], ["diff", "Changes"], ["gates", "Gates"], ["usage", "Usage"], ["attempts", "Attempts"], ["files", "Files"], ["events", "Events"]];

const ASKS = {
  stop: { title: "Stop this task?", text: "Ends the agent and everything it started. The task ends as killed.", verb: "Stop", field: "Reason (optional)", danger: true },
  interrupt: { title: "Interrupt this task?", text: "Stops the agent; 'resume' continues its session.", verb: "Interrupt", field: "Reason (optional)" },
  resume: { title: "Continue this task?", verb: "Resume", field: "Message for the agent (optional)" },
  approve: { title: "Approve the waiting stage?", verb: "Approve", field: "Message for the agent (optional)" },
  retry: { title: "Run this task again?", text: "Continues the agent's session if it can; stages that are done stay done. Permissions and limits stay as they are.", verb: "Retry", field: "Message for the agent (optional)" },
  reject: { title: "Reject the waiting stage?", text: "The task ends.", verb: "Reject", field: "Reason (optional)", danger: true },
};

async function send(id, verb, body) {
  try {
    await post(`/api/tasks/${encodeURIComponent(id)}/${verb}`, body);
    tell(`${verb}: done`);
    return true;
  } catch (error) {
    tell(`${error.message}${error.hint ? ` (${error.hint})` : ""}`, "error");
    return false;
  }
}

async function act(id, verb) {
  const answer = await confirm(ASKS[verb]);
  if (answer) await send(id, verb, answer.message ? { message: answer.message } : {});
}

function Question({ detail }) {
  const [answer, setAnswer] = useState("");
  const [isBusy, setBusy] = useState(false);
  const asked = detail.question;
  if (!asked) return null;
  const run = async (verb) => {
    if (verb === "reject" && !(await confirm({ ...ASKS.reject, field: "" }))) return;
    if (verb === "approve" && !(await confirm({ ...ASKS.approve, field: "" }))) return;
    setBusy(true);
    if (await send(detail.task_id, verb, answer ? { message: answer } : {})) setAnswer("");
    setBusy(false);
  };
  return html`<section class="card question tone-ask" aria-label="Question"><h2>${asked.approval ? `Approve ${plain(asked.approval)}?` : "The task asks"}</h2>
    <${Markdown} text=${asked.question} /><small class="quiet">since ${moment(asked.at)}</small>
    ${!isReadOnly.value && html`<form onSubmit=${(e) => { e.preventDefault(); run(asked.approval ? "approve" : "resume"); }}>
      <label>${asked.approval ? "Message (optional)" : "Answer"}<textarea rows="3" maxlength="30000" value=${answer} onInput=${(e) => setAnswer(e.target.value)}></textarea></label>
      <div class="row end">${asked.approval && html`<button type="button" class="danger" disabled=${isBusy} onClick=${() => run("reject")}>Reject</button>`}<button type="submit" class="primary" disabled=${isBusy}>${asked.approval ? "Approve" : "Answer and resume"}</button></div></form>`}
  </section>`;
}

/** Times of the journal in the clock of the person. */
const local = (text) => text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, moment);
/** Why it has its state, where the state does not say it. */
const reasonOf = ({ status, status_reason }) => (["running", "spawning", "completing", "completed", "queued"].includes(status) ? "" : local(plain(status_reason)));

function Next({ detail }) {
  const id = detail.task_id;
  const { status } = detail.manifest, commands = detail.next.steps.map((step) => [step.command, step.does]);
  if (status !== "queued") commands.push([`holdfast diff ${id}`, "show what it changed"]);
  // A stage that waits for approval has no session yet, and 'approve' starts it.
  if (!detail.manifest.finished_at && status !== "queued" && !detail.question?.approval) {
    commands.push([`holdfast takeover ${id}`, "continue its session yourself"], [`holdfast attach ${id}`, "watch it in a terminal"]);
    if (!commands.some(([command]) => command.startsWith("holdfast resume"))) commands.push([`holdfast resume ${id}`, "continue after an interrupt"]);
  }
  commands.push([`holdfast show ${id}`, "show all facts"]);
  const seen = new Set();
  return html`<section class="card next" aria-label="Next"><h2>Next</h2>${detail.next.why && !detail.question && html`<p>${local(plain(detail.next.why))}</p>`}
    <ul>${commands.filter(([command]) => !seen.has(command) && seen.add(command)).map(([command, does]) => html`<li><${Copy} text=${plain(command)} /><small class="quiet">${plain(does)}</small></li>`)}</ul></section>`;
}

function Header({ detail, row }) {
  const { manifest } = detail, id = detail.task_id;
  const isEnded = Boolean(manifest.finished_at), isOpen = !isEnded && !detail.question;
  const facts = [["agent", manifest.agent], ["model", manifest.model], ["stage", manifest.stage], ["attempts", manifest.attempt], ["tokens", tokens(manifest.usage)], ["cost", cost(manifest.usage)], ["project", manifest.project_dir], ["branch", detail.worktree?.branch], ["permissions", manifest.permissions]].filter(([, value]) => value && value !== "–");
  return html`<header class="task-head">
    <div class="row wrap"><h1>${plain(manifest.task_name)}</h1><${State} state=${detail.state} /><${Elapsed} row=${row} at=${row.at} /><span class="grow"></span>
      ${!isReadOnly.value && html`<div class="row actions">
        ${isOpen && manifest.status === "waiting" && html`<button type="button" onClick=${() => act(id, "resume")}>Resume</button>`}
        ${isOpen && manifest.status !== "queued" && html`<button type="button" onClick=${() => act(id, "interrupt")}>Interrupt</button>`}
        ${isEnded && manifest.status !== "completed" && html`<button type="button" onClick=${() => act(id, "retry")}>Retry</button>`}
        ${!isEnded && html`<button type="button" class="danger" onClick=${() => act(id, "stop")}>Stop</button>`}</div>`}</div>
    <p class="row wrap meta"><code>${id}</code>${facts.map(([name, value]) => html`<span><small>${name}</small> ${plain(value)}</span>`)}</p>
    ${reasonOf(manifest) && !detail.question && html`<p class="reason">${reasonOf(manifest)}</p>`}
    ${detail.queue?.waits && html`<p class="reason">No ${detail.queue.position} in the queue; waits for: ${plain(detail.queue.waits)}</p>`}
    ${detail.runner && html`<p class="problem">No runner: ${plain(detail.runner)}</p>`}
    ${detail.is_cut && html`<p class="quiet">This task is too large for one page: lists show their ends.</p>`}
  </header>`;
}

export function TaskPage({ id }) {
  const parameters = new URLSearchParams(location.search);
  const [detail, setDetail] = useState(null);
  const [problem, setProblem] = useState("");
  const [tab, setTab] = useState(parameters.get("tab") || "log");
  const [attempt, setAttempt] = useState(0);
  const [events, setEvents] = useState([]);
  const [reports, setReports] = useState([]);
  // The log changes in place: a component is drawn again only if one of its properties changes.
  const [version, redraw] = useState(0);
  const log = useMemo(() => new Log(id, () => redraw((n) => n + 1)), [id]);
  // The replay: the moment that is shown (null: the present), all moments, and the log as it was.
  const [at, setAt] = useState(null);
  const [moments, setMoments] = useState([]);
  const past = useMemo(() => new Log(id, () => redraw((n) => n + 1)), [id]);
  const state = useRef({ timer: 0, isLoading: false, isDue: false, took_ms: 0 }).current;
  const path = `/api/tasks/${encodeURIComponent(id)}`;

  // The details are read anew when the journal grew: soon, but never more than a third of the time.
  const load = async () => {
    clearTimeout(state.timer);
    if (state.isLoading) { state.isDue = true; return; }
    state.isLoading = true; state.isDue = false;
    const begun = performance.now();
    try {
      const found = await get(path);
      found.loaded_at = serverNow();
      setDetail(found); setProblem("");
      document.title = `${found.state}: ${plain(found.manifest.task_name)} – holdfast`;
    } catch (error) { setProblem(error.message); }
    state.took_ms = performance.now() - begun;
    state.isLoading = false;
    if (state.isDue) soon();
  };
  const soon = () => { clearTimeout(state.timer); state.timer = setTimeout(load, Math.max(150, state.took_ms * 2)); };

  useEffect(() => {
    let source = null, isGone = false;
    (async () => {
      const at = Number(parameters.get("at"));
      load();
      await (parameters.has("at") && at >= 0 ? log.to(at) : log.toEnd()).catch(() => {});
      if (isGone) return;
      const seen = new Set();
      source = stream(() => `/api/stream?task=${encodeURIComponent(id)}&log=${log.isAtEnd ? log.end : log.size}`, {
        hello: () => { load(); if (log.isAtEnd && log.marked < 0 && log.end < log.size) log.toEnd(); },
        journal: (data) => { const fresh = data.events.filter((event) => !seen.has(event.id) && seen.add(event.id)); setEvents((old) => [...old, ...fresh].slice(-3000)); soon(); },
        log: (data) => log.follow(data),
        board: soon,
        again: () => { load(); if (log.isAtEnd && log.marked < 0) log.toEnd().catch(() => {}); },
      });
    })();
    return () => { isGone = true; source?.close(); clearTimeout(state.timer); };
  }, [id]);
  const isReplay = at != null;
  useEffect(() => { if (isReplay) get(`${path}/replay`).then((found) => setMoments(found.moments), (error) => tell(error.message, "error")); }, [isReplay, isReplay && detail?.journal_bytes]);
  useEffect(() => {
    if (at == null) return undefined;
    const timer = setTimeout(() => past.toTime(new Date(at).toISOString()).catch((error) => tell(error.message, "error")), 60);
    return () => clearTimeout(timer);
  }, [at]);
  useEffect(() => { if (tab === "usage") get(`${path}/usage`).then((found) => setReports(found.reports), () => {}); }, [tab, detail?.journal_bytes]);
  useEffect(() => {
    const onKey = (event) => {
      if (event.metaKey || event.ctrlKey || event.altKey || event.target.matches?.("input, textarea, select")) return;
      const found = TABS[Number(event.key) - 1];
      if (found) choose(found[0]);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const choose = (name) => { setTab(name); history.replaceState(null, "", `/task/${encodeURIComponent(id)}?tab=${name}`); };

  if (!detail) return html`<main class="page">${problem ? html`<${Empty} title=${problem}><p><a href="/">All tasks</a></p><//>` : html`<p class="loading">Loading…</p>`}</main>`;
  const isEnded = Boolean(detail.manifest.finished_at);
  const row = { state: detail.state, elapsed_s: detail.elapsed_s, is_counting: !isEnded && !detail.question && !["queued", "waiting"].includes(detail.manifest.status), at: detail.loaded_at };
  const counts = { gates: detail.gates.length, attempts: detail.attempts.filter((each) => each.kind === "agent").length, files: detail.files.length };
  return html`<main class="page task">
    ${problem && html`<p class="problem">${problem}</p>`}
    <${Header} detail=${detail} row=${row} />
    <${Question} detail=${detail} />
    <${Recorder} detail=${detail} onAttempt=${(number) => { setAttempt(number); choose("attempts"); }} at=${at} onAt=${setAt} />
    ${isReplay && html`<${ReplayFacts} moments=${moments} attempts=${detail.attempts} at=${at} begin=${Date.parse(detail.manifest.created_at || detail.manifest.started_at)} onAt=${setAt} />`}
    <div class="two"><${Budgets} detail=${detail} /><${Next} detail=${detail} /></div>
    <div class="tabs" role="tablist" aria-label="About the task">${TABS.map(([name, title], at) => html`<button type="button" role="tab" id=${`tab-${name}`} aria-selected=${tab === name} aria-controls="panel" onClick=${() => choose(name)} title=${`Key ${at + 1}`}>${title}${counts[name] ? html` <span class="num">${counts[name]}</span>` : ""}</button>`)}</div>
    <section id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`}>
      ${tab === "log" && (isReplay
        ? html`<${LogView} key="past" log=${past} version=${version} id=${id} isEnded=${isEnded} onLeave=${() => setAt(null)} />`
        : html`<${LogView} key="log" log=${log} version=${version} id=${id} isEnded=${isEnded} />`)}
      ${tab === "diff" && html`<${Diff} id=${id} stages=${detail.stages} />`}
      ${tab === "gates" && html`<${Gates} gates=${detail.gates} />`}
      ${tab === "usage" && html`<${Chart} reports=${reports} budgets=${detail.budgets} />`}
      ${tab === "attempts" && html`<${Attempts} attempts=${detail.attempts} spans=${detail.timeline.spans} id=${id} chosen=${attempt} />`}
      ${tab === "files" && html`<${Files} files=${detail.files} id=${id} left_out=${detail.files_left_out} />`}
      ${tab === "events" && html`<${Events} events=${events} />`}
    </section>
    ${detail.manifest.goal && html`<details class="card goal"><summary>Goal</summary><${Markdown} text=${detail.manifest.goal} /></details>`}
  </main>`;
}
