// Markdown as DOM nodes: only the lexer of marked is used, and markup in the text stays text.
import { lexer } from "marked";
import { html, plain } from "/ui.js";

/** A link that a person may follow: http, https and mail. Everything else is shown, not linked. */
function safe(address) {
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch { return null; }
}

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
const raw = (text) => String(text ?? "").replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => ENTITIES[name]);
const many = (tokens) => (tokens || []).map(node);

function node(token) {
  switch (token.type) {
    case "space": return null;
    case "heading": {
      const Tag = `h${Math.min(6, token.depth + 1)}`;
      return html`<${Tag}>${many(token.tokens)}<//>`;
    }
    case "paragraph": return html`<p>${many(token.tokens)}</p>`;
    case "text": return token.tokens ? many(token.tokens) : raw(token.text);
    case "escape": return raw(token.text);
    case "strong": return html`<strong>${many(token.tokens)}</strong>`;
    case "em": return html`<em>${many(token.tokens)}</em>`;
    case "del": return html`<del>${many(token.tokens)}</del>`;
    case "codespan": return html`<code>${raw(token.text)}</code>`;
    case "code": return html`<pre><code>${token.text}</code></pre>`;
    case "br": return html`<br />`;
    case "hr": return html`<hr />`;
    case "blockquote": return html`<blockquote>${many(token.tokens)}</blockquote>`;
    case "list": {
      const Tag = token.ordered ? "ol" : "ul";
      return html`<${Tag}>${token.items.map((item) => html`<li>${item.task && (item.checked ? "☑ " : "☐ ")}${many(item.tokens)}</li>`)}<//>`;
    }
    case "checkbox": return null;
    case "table": return html`<div class="scroll" tabindex="0"><table><thead><tr>${token.header.map((cell) => html`<th>${many(cell.tokens)}</th>`)}</tr></thead>
      <tbody>${token.rows.map((row) => html`<tr>${row.map((cell) => html`<td>${many(cell.tokens)}</td>`)}</tr>`)}</tbody></table></div>`;
    case "link": {
      const href = safe(token.href);
      return href ? html`<a href=${href} target="_blank" rel="noopener noreferrer" title=${href}>${many(token.tokens)}</a>` : html`<span>${many(token.tokens)} (${token.href})</span>`;
    }
    case "image": return html`<span class="quiet">[image: ${raw(token.text)} ${token.href}]</span>`;
    default: return token.raw ?? "";
  }
}

export function Markdown({ text }) {
  const source = plain(text).slice(0, 200000);
  let tokens;
  try { tokens = lexer(source); } catch { return html`<pre>${source}</pre>`; }
  return html`<div class="markdown">${many(tokens)}</div>`;
}
