// What a task changed, side by side.
import { useEffect, useState } from "preact/hooks";
import { html, plain } from "/ui.js";
import { get } from "/api.js";

const MAX_LINES = 600;

/** Pairs of lines: removed ones stand beside those that were added in their place. */
function pairs(hunk) {
  const rows = [];
  let oldLine = hunk.old_start, newLine = hunk.new_start, removed = [], added = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++) rows.push([removed[at] || null, added[at] || null]);
    removed = []; added = [];
  };
  for (const line of hunk.lines) {
    const text = plain(line.slice(1));
    if (line[0] === "-") removed.push({ number: oldLine++, text, kind: "del" });
    else if (line[0] === "+") added.push({ number: newLine++, text, kind: "add" });
    else if (line[0] === "\\") continue;
    else { flush(); rows.push([{ number: oldLine++, text, kind: "" }, { number: newLine++, text, kind: "" }]); }
  }
  flush();
  return rows;
}

/** The same lines below each other, for a narrow screen. */
function lines(hunk) {
  let oldLine = hunk.old_start, newLine = hunk.new_start;
  return hunk.lines.filter((line) => line[0] !== "\\").map((line) => {
    const kind = { "-": "del", "+": "add" }[line[0]] || "";
    const number = kind === "del" ? oldLine++ : newLine++;
    if (!kind) oldLine++;
    return { number, text: plain(line.slice(1)), kind };
  });
}

const NARROW = matchMedia("(max-width: 640px)");
function useNarrow() {
  const [isNarrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const onChange = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", onChange);
    return () => NARROW.removeEventListener("change", onChange);
  }, []);
  return isNarrow;
}

const Side = ({ side }) => (side
  ? html`<td class="no">${side.number}</td><td class="text ${side.kind}">${side.text}</td>`
  : html`<td class="no"></td><td class="text none"></td>`);

const WHY = { binary: "a binary file", large: "the file is too large to show", limit: "left out: the whole difference is too large" };

function File({ file }) {
  const size = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  const [isOpen, setOpen] = useState(size <= MAX_LINES);
  const isNarrow = useNarrow(), columns = isNarrow ? 2 : 4;
  return html`<article class="card file" id=${`file-${file.path}`}>
    <header class="row"><button type="button" class="ghost" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${isOpen ? "▾" : "▸"}</button>
      <code class="path">${plain(file.old_path ? `${file.old_path} → ${file.path}` : file.path)}</code><span class="pill">${file.kind}</span>${file.is_symlink && html`<span class="pill">link</span>`}
      <span class="grow"></span>${file.added != null && html`<span class="plus num">+${file.added}</span><span class="minus num">−${file.deleted}</span>`}</header>
    ${isOpen && (file.left_out ? html`<p class="quiet pad">${WHY[file.left_out] || file.left_out}</p>` : html`<div class="scroll" tabindex="0"><table class="split ${isNarrow ? "unified" : ""}"><colgroup><col class="no" /><col />${!isNarrow && html`<col class="no" /><col />`}</colgroup><tbody>
      ${file.hunks.map((hunk) => html`<tr class="hunk"><td colspan=${columns}>@@ −${hunk.old_start},${hunk.old_lines} +${hunk.new_start},${hunk.new_lines} @@ ${plain(hunk.section)}</td></tr>
        ${isNarrow ? lines(hunk).map((line) => html`<tr><${Side} side=${line} /></tr>`) : pairs(hunk).map(([one, other]) => html`<tr><${Side} side=${one} /><${Side} side=${other} /></tr>`)}`)}
    </tbody></table>${file.cut_lines > 0 && html`<p class="quiet pad">${file.cut_lines} lines were cut</p>`}</div>`)}
  </article>`;
}

export function Diff({ id, stages }) {
  const [stage, setStage] = useState("");
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    let isGone = false;
    setFound(null); setProblem(null);
    get(`/api/tasks/${encodeURIComponent(id)}/diff${stage ? `?stage=${encodeURIComponent(stage)}` : ""}`)
      .then((value) => !isGone && setFound(value), (error) => !isGone && setProblem(error));
    return () => { isGone = true; };
  }, [id, stage]);
  return html`<div class="diff">
    ${stages.length > 1 && html`<div class="bar"><label class="inline">Changes of <select value=${stage} onChange=${(e) => setStage(e.target.value)}><option value="">the whole task</option>${stages.map((each) => html`<option value=${each.name}>${plain(each.name)}</option>`)}</select></label></div>`}
    ${problem && html`<p class="quiet pad">${problem.message}${problem.hint && ` (${problem.hint})`}</p>`}
    ${!found && !problem && html`<p class="loading">Comparing…</p>`}
    ${found && html`<p class="quiet">${found.files.length} ${found.files.length === 1 ? "file" : "files"}, <span class="plus">+${found.added}</span> <span class="minus">−${found.deleted}</span>${found.left_out.length > 0 && `; ${found.left_out.length} outside the scope are left out`}${(found.unreadable || []).length > 0 && `; what is in ${found.unreadable.join(", ")} cannot be read`}${found.is_cut && "; too large: only a part is shown"}</p>
      ${found.files.map((file) => html`<${File} key=${file.path} file=${file} />`)}`}
  </div>`;
}
