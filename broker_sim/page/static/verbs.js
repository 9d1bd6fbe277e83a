// The cluster's verbs: their texts, a form for each, the call, and its result.

import { h } from "page/dom.js";

const READS = new Set(["GET", "HEAD"]);
const NOTICE_MS = 6_000;

export class Verbs {
  constructor(session, headers) {
    this.session = session;
    this.headers = headers;
    this.byName = new Map(session.verbs.map((verb) => [verb.name, verb]));
    this.notices = h("div", { class: "notices", role: "status", "aria-live": "polite" });
    document.body.append(this.notices);
  }

  text(name) {
    return this.byName.get(name)?.text ?? "";
  }

  // Calls a verb with values by parameter, and shows the result.
  async call(name, values) {
    const verb = this.byName.get(name);
    const left = { ...values };
    const take = (parameter) => {
      const value = left[parameter];
      delete left[parameter];
      return value;
    };
    const path = verb.path.replace(/\/\{(\w+)\}/g, (_, parameter) => {
      const value = take(parameter);
      return value === undefined || value === "" ? "" : `/${encodeURIComponent(value)}`;
    });
    const fields = new Map(verb.parameters.map((parameter) => [parameter.name, parameter.field]));
    const body = Object.fromEntries(Object.entries(left).map(([parameter, value]) => [fields.get(parameter) ?? parameter, value]));
    const title = titleOf(name, values);
    try {
      const response = await fetch(path, {
        method: verb.method, body: JSON.stringify(body),
        headers: { ...this.headers(), "Content-Type": "application/json", "X-Broker-Sim-Page": this.session.page_token },
      });
      const answer = await response.json().catch(() => ({}));
      this.notice(response.ok ? "good" : "bad", title, response.ok ? verb.text : answer.error ?? response.statusText);
      return response.ok;
    } catch {
      this.notice("bad", title, "the control port does not answer");
      return false;
    }
  }

  notice(kind, title, text) {
    const notice = h("div", { class: `notice ${kind}` }, h("b", {}, title), h("span", {}, text));
    this.notices.prepend(notice);
    setTimeout(() => notice.remove(), NOTICE_MS);
  }

  // Opens the list of all verbs that change the cluster.
  openAll() {
    const verbs = this.session.verbs.filter((verb) => !READS.has(verb.method));
    const items = verbs.map((verb) => h("button", { class: "verb", onclick: () => {
      dialog.close();
      this.open(verb.name, {});
    } }, h("b", {}, verb.name.replaceAll("_", " ")), h("span", {}, verb.text)));
    const search = h("input", { type: "search", placeholder: "Search actions", "aria-label": "Search actions", autofocus: true, oninput: () => {
      verbs.forEach((verb, index) => {
        items[index].hidden = !`${verb.name.replaceAll("_", " ")} ${verb.text}`.toLowerCase().includes(search.value.toLowerCase());
      });
    } });
    const dialog = open("Actions", h("div", { class: "verbs" }, search, h("div", { class: "verb-list" }, ...items)));
  }

  // Opens the form of one verb, filled with values.
  open(name, values) {
    const verb = this.byName.get(name);
    const inputs = verb.parameters.map((parameter) => makeInput(parameter, values[parameter.name]));
    const form = h("form", { method: "dialog", onsubmit: (event) => {
      event.preventDefault();
      const given = {};
      for (const { parameter, read } of inputs) {
        const value = read();
        if (value !== undefined) given[parameter.name] = value;
      }
      dialog.close();
      this.call(name, given);
    } }, h("p", {}, verb.text), ...inputs.map(({ label }) => label),
    h("footer", {}, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), h("button", { class: "primary" }, name.replaceAll("_", " "))));
    const dialog = open(name.replaceAll("_", " "), form);
  }
}

// Returns the title of a call: its verb with its arguments.
export function titleOf(name, values) {
  const subject = Object.entries(values).filter(([, value]) => value !== "").map(([parameter, value]) => `${parameter.replaceAll("_", " ")} ${value}`).join(", ");
  return `${name.replaceAll("_", " ")}${subject ? ` (${subject})` : ""}`;
}

function open(title, content) {
  const dialog = h("dialog", { "aria-label": title }, h("header", {}, h("h2", {}, title), h("button", { "aria-label": "Close", class: "close", onclick: () => dialog.close() }, "×")), content);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// Returns a labelled input for a parameter, and the function that reads its value; undefined if it is empty.
function makeInput(parameter, value) {
  const { name, type, required } = parameter;
  const title = name.replaceAll("_", " ");
  if (type === "bool") {
    const input = h("input", { type: "checkbox", checked: value === true });
    return { parameter, label: h("label", { class: "check" }, input, title), read: () => (input.checked ? true : undefined) };
  }
  const isNumber = /^(int|float)\b/.test(type);
  const input = h("input", { type: isNumber ? "number" : "text", step: type.startsWith("float") ? "any" : 1, required, value: value ?? "" });
  const read = () => {
    if (input.value === "") return undefined;
    if (isNumber) return Number(input.value);
    if (/Mapping|Sequence|list/.test(type)) return JSON.parse(input.value);
    return input.value;
  };
  return { parameter, label: h("label", {}, h("span", {}, title, required ? "" : h("small", {}, " optional")), input), read };
}
