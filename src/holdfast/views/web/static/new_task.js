// A new task for an agent: a form made from the schema that the server gives, checked by the code that creates tasks.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, Copy, confirm, plain, tell } from "/ui.js";
import { get, post } from "/api.js";

const NO_FORM = { schema: { properties: {}, required: [] }, agents: [], projects: [] };

/** The fields that have a value. */
const filled = (fields, agents) => {
  const able = agents.find((agent) => agent.name === fields.agent);
  const found = Object.entries(fields).filter(([name, value]) => value !== "" && !(name === "permissions" && able && !able.has_permissions));
  return Object.fromEntries(found.map(([name, value]) => [name, name === "labels" ? value.split("\n").map((each) => each.trim()).filter(Boolean) : value]));
};

function Control({ name, rule, value, onValue, offer, isRequired, problem }) {
  const set = (event) => onValue(name, event.target.value);
  const about = { name, id: `f-${name}`, value, "aria-invalid": problem ? "true" : undefined, "aria-describedby": problem ? `p-${name}` : rule.description ? `d-${name}` : undefined };
  if (name === "agent") return html`<select ...${about} required onChange=${set}>${!offer.agents.some((agent) => agent.is_installed) && html`<option value="">none is installed (holdfast doctor)</option>`}${offer.agents.map((agent) => html`<option value=${agent.name} disabled=${!agent.is_installed}>${agent.name}${agent.is_installed ? "" : " (not installed)"}</option>`)}</select>`;
  if (rule.enum) {
    const able = offer.agents.find((agent) => agent.name === offer.agent);
    const isOff = name === "permissions" && able && !able.has_permissions;
    return html`<select ...${about} disabled=${isOff} onChange=${set}>${name !== "permissions" && html`<option value="">default</option>`}${rule.enum.map((each) => html`<option value=${each}>${each}</option>`)}</select>`;
  }
  if (name === "prompt" || rule.type === "array") return html`<textarea ...${about} rows=${name === "prompt" ? 7 : 2} required=${isRequired} maxlength=${rule.maxLength} placeholder=${rule.type === "array" ? "key=value, one per line" : ""} onInput=${set}></textarea>`;
  const mode = rule.type === "integer" ? "numeric" : rule.type === "number" ? "decimal" : undefined;
  return html`<input ...${about} required=${isRequired} inputmode=${mode} maxlength=${rule.maxLength} list=${name === "project" ? "projects" : undefined} autocomplete="off" onInput=${set} />`;
}

function Field({ name, rule, problem, ...more }) {
  return html`<div class="field ${name === "prompt" ? "wide" : ""}"><label for=${`f-${name}`}>${plain(rule.title)}</label>
    <${Control} name=${name} rule=${rule} problem=${problem} ...${more} />
    ${problem ? html`<small id=${`p-${name}`} class="problem" role="alert">${plain(problem)}</small>` : rule.description && html`<small id=${`d-${name}`} class="quiet">${plain(rule.description).replaceAll("`", "")}</small>`}</div>`;
}

export function NewTask() {
  const [offer, setOffer] = useState(NO_FORM);
  const [fields, setFields] = useState({});
  const [isQueued, setQueued] = useState(false);
  const [checked, setChecked] = useState({});
  const [isBusy, setBusy] = useState(false);
  const asked = useRef({ timer: 0, number: 0 }).current;
  const { properties, required } = offer.schema;
  useEffect(() => {
    document.title = "New task – holdfast";
    get("/api/form").then((found) => {
      setOffer(found);
      const first = { agent: found.agents.find((agent) => agent.is_installed)?.name || "", project: found.projects[0] || "", permissions: "edit" };
      setFields(Object.fromEntries(Object.keys(found.schema.properties).map((name) => [name, first[name] || ""])));
    }, (error) => tell(error.message, "error"));
  }, []);
  const body = (more) => ({ ...more, is_queued: isQueued, fields: filled(fields, offer.agents) });
  // Checked a moment after the last key, by the server.
  useEffect(() => {
    clearTimeout(asked.timer);
    const number = ++asked.number;
    if (!fields.prompt || !fields.project) { setChecked({}); return undefined; }
    asked.timer = setTimeout(() => {
      const take = (found) => { if (number === asked.number) setChecked(found); };
      post("/api/tasks", body({ check: true })).then(take, (error) => take({ error: error.message, hint: error.hint, problems: error.problems }));
    }, 400);
    return () => clearTimeout(asked.timer);
  }, [fields, isQueued, offer]);
  const onValue = (name, value) => setFields((old) => ({ ...old, [name]: value }));
  const verb = isQueued ? "Add to the queue" : "Start";
  const submit = async (event) => {
    event.preventDefault();
    const answer = await confirm({ title: isQueued ? "Add this task to the queue?" : "Start this task?", text: `${fields.agent} will work in ${fields.project}.`, verb });
    if (!answer) return;
    setBusy(true);
    try {
      const made = await post("/api/tasks", body({}));
      for (const note of made.notes) tell(note);
      dispatchEvent(new CustomEvent("holdfast-go", { detail: `/task/${encodeURIComponent(made.task_id)}` }));
    } catch (error) { setChecked({ error: error.message, hint: error.hint, problems: error.problems }); }
    setBusy(false);
  };
  const problems = checked.problems || {};
  const show = (isMain) => Object.entries(properties).filter(([, rule]) => rule["x-main"] === isMain).map(([name, rule]) => html`<${Field} key=${name} name=${name} rule=${rule} value=${fields[name] ?? ""}
    onValue=${onValue} offer=${{ ...offer, agent: fields.agent }} isRequired=${required.includes(name)} problem=${problems[name]} />`);
  return html`<main class="page narrow"><h1>New task</h1>
    <form class="card form" onSubmit=${submit} noValidate>
      <div class="grid">${show(true)}</div>
      <datalist id="projects">${offer.projects.map((each) => html`<option value=${each}></option>`)}</datalist>
      <details open=${Object.keys(problems).some((name) => properties[name] && !properties[name]["x-main"])}><summary>Limits, labels and more</summary><div class="grid">${show(false)}</div></details>
      <label class="check"><input type="checkbox" checked=${isQueued} onChange=${(e) => setQueued(e.target.checked)} /> Add it to the queue instead of starting it now</label>
      ${checked.error && !Object.keys(problems).length && html`<p class="problem" role="alert">${plain(checked.error)}${checked.hint && html`<br /><small>${plain(checked.hint)}</small>`}</p>`}
      ${(checked.notes || []).map((note) => html`<p class="quiet">${plain(note)}</p>`)}
      ${checked.command && html`<div class="command"><small class="quiet">The same on the command line</small><${Copy} text=${checked.command} /></div>`}
      <div class="row end"><a href="/" class="button">Cancel</a><button type="submit" class="primary" disabled=${isBusy || Boolean(checked.error) || !checked.command}>${verb}</button></div>
    </form></main>`;
}
