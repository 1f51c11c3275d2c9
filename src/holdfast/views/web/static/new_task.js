// A new task for an agent. It shows the command that does the same.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, Copy, confirm, tell } from "/ui.js";
import { get, post } from "/api.js";

const EMPTY = { prompt: "", agent: "", project: "", model: "", permissions: "edit", name: "", budget_usd: "", worktree: false, sandbox: false, is_queued: false };

const filled = (fields, agents) => {
  const able = agents.find((agent) => agent.name === fields.agent);
  return Object.fromEntries(Object.entries(fields).filter(([name, value]) => value && !(name === "permissions" && able && !able.has_permissions)));
};

export function NewTask() {
  const [offer, setOffer] = useState({ agents: [], projects: [] });
  const [fields, setFields] = useState(EMPTY);
  const [checked, setChecked] = useState({});
  const [isBusy, setBusy] = useState(false);
  const timer = useRef(0);
  useEffect(() => {
    document.title = "New task – holdfast";
    get("/api/form").then((found) => {
      setOffer(found);
      setFields((old) => ({ ...old, agent: old.agent || found.agents.find((agent) => agent.is_installed)?.name || "", project: old.project || found.projects[0] || "" }));
    }, (error) => tell(error.message, "error"));
  }, []);
  // Checked by the same code that creates the task, a moment after the last key.
  useEffect(() => {
    clearTimeout(timer.current);
    if (!fields.prompt || !fields.project) { setChecked({}); return undefined; }
    timer.current = setTimeout(() => {
      post("/api/tasks", { check: true, fields: filled(fields, offer.agents) }).then(setChecked, (error) => setChecked({ error: error.message, hint: error.hint }));
    }, 500);
    return () => clearTimeout(timer.current);
  }, [fields, offer]);
  const set = (name) => (event) => setFields({ ...fields, [name]: event.target.type === "checkbox" ? event.target.checked : event.target.value });
  const submit = async (event) => {
    event.preventDefault();
    const answer = await confirm({ title: "Start this task?", text: `${fields.agent} works in ${fields.project}.`, verb: fields.is_queued ? "Add to the queue" : "Start" });
    if (!answer) return;
    setBusy(true);
    try {
      const made = await post("/api/tasks", { fields: filled(fields, offer.agents) });
      for (const note of made.notes) tell(note);
      dispatchEvent(new CustomEvent("holdfast-go", { detail: `/task/${encodeURIComponent(made.task_id)}` }));
    } catch (error) { setChecked({ error: error.message, hint: error.hint }); }
    setBusy(false);
  };
  const able = offer.agents.find((agent) => agent.name === fields.agent);
  return html`<main class="page narrow"><h1>New task</h1>
    <form class="card form" onSubmit=${submit}>
      <label>What to do<textarea name="prompt" rows="7" required maxlength="30000" value=${fields.prompt} onInput=${set("prompt")}></textarea></label>
      <div class="grid">
        <label>Agent<select name="agent" value=${fields.agent} onChange=${set("agent")}>${offer.agents.map((agent) => html`<option value=${agent.name} disabled=${!agent.is_installed}>${agent.name}${agent.is_installed ? "" : " (not installed)"}</option>`)}</select></label>
        <label>Model<input name="model" value=${fields.model} onInput=${set("model")} placeholder="its default" /></label>
        <label>Project directory<input name="project" list="projects" required value=${fields.project} onInput=${set("project")} placeholder="/path/to/project" /><datalist id="projects">${offer.projects.map((each) => html`<option value=${each}></option>`)}</datalist></label>
        <label>Permissions<select name="permissions" value=${fields.permissions} disabled=${able && !able.has_permissions} onChange=${set("permissions")}><option value="read">read</option><option value="edit">edit</option></select></label>
        <label>Name<input name="name" value=${fields.name} onInput=${set("name")} placeholder="from the text" /></label>
        <label>Budget in dollars<input name="budget_usd" inputmode="decimal" value=${fields.budget_usd} onInput=${set("budget_usd")} placeholder="none" /></label>
      </div>
      <fieldset><legend>How</legend>
        <label class="check"><input type="checkbox" checked=${fields.worktree} onChange=${set("worktree")} /> in a git worktree</label>
        <label class="check"><input type="checkbox" checked=${fields.sandbox} onChange=${set("sandbox")} /> in a sandbox</label>
        <label class="check"><input type="checkbox" checked=${fields.is_queued} onChange=${set("is_queued")} /> through the queue</label>
      </fieldset>
      ${checked.error && html`<p class="problem" role="alert">${checked.error}${checked.hint && html`<br /><small>${checked.hint}</small>`}</p>`}
      ${(checked.notes || []).map((note) => html`<p class="quiet">${note}</p>`)}
      ${checked.command && html`<div class="command"><small class="quiet">The same on the command line</small><${Copy} text=${checked.command} /></div>`}
      <div class="row end"><a href="/" class="button">Cancel</a><button type="submit" class="primary" disabled=${isBusy || Boolean(checked.error) || !fields.prompt}>${fields.is_queued ? "Add to the queue" : "Start"}</button></div>
    </form></main>`;
}
