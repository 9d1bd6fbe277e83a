// Creates and fills elements of the page, and keeps them in the order of their data.

const SVG = "http://www.w3.org/2000/svg";

// Returns an element; `on...` properties are listeners, the others attributes.
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Sets the text of an element; an unchanged text costs no layout.
export function setText(element, text) {
  const value = String(text);
  if (element.shownText === value) return;
  element.shownText = value;
  element.textContent = value;
}

// Sets the text of an element; a line may break after each underscore.
export function setBreakable(element, text) {
  if (element.textContent !== text) element.replaceChildren(...text.split(/(?<=_)/).flatMap((part) => [part, h("wbr")]));
}

export function setAttribute(element, name, value) {
  if (value === null || value === false || value === undefined) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

// Gives `parent` one child for each item, in order: an item keeps its element as long as its key exists.
export function keyed(parent, items, keyOf, make, update, leave = (child) => child.remove()) {
  const before = parent.children_by_key ?? new Map();
  const after = new Map();
  let place = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    if (after.has(key)) continue;
    const child = before.get(key) ?? make(item);
    before.delete(key);
    after.set(key, child);
    update?.(child, item);
    if (child === place) place = place.nextSibling;
    else parent.insertBefore(child, place);
  }
  parent.children_by_key = after;
  for (const child of before.values()) leave(child);
}

export function panel(title, hint, ...children) {
  const count = h("span", { class: "count" });
  const aside = h("div", { class: "aside" });
  const id = `panel-${title.toLowerCase().replace(/\W+/g, "-")}`;
  const head = h("header", {}, h("h2", { id }, title), count, aside);
  const element = h("section", { class: `panel ${id}`, "aria-labelledby": id, title: null }, head, ...children);
  if (hint) head.insertBefore(h("span", { class: "hint" }, hint), aside);
  return { element, count, aside };
}

// Returns the heads of a table's columns; a star stands for a column of numbers, null for a column that is left out.
export function heads(...titles) {
  return titles.filter((title) => title !== null).map((title) => h("th", { scope: "col", class: title.endsWith("*") ? "number" : null }, title.replace("*", "")));
}

export function empty(text) {
  return h("p", { class: "empty" }, text);
}
