// Light or dark theme: the system's, until the user chooses one.

import { h } from "page/dom.js";

const CHOICE = "broker-sim-theme";
const root = document.documentElement;

// Applies the last choice, and returns the button that switches themes.
export function themeButton() {
  const last = localStorage.getItem(CHOICE);
  if (last) root.dataset.theme = last;
  return h("button", { class: "theme", onclick: turn, title: "Light or dark", "aria-label": "Light or dark" }, "◐");
}

function turn() {
  const theme = root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.dataset.theme = theme === "dark" ? "light" : "dark";
  localStorage.setItem(CHOICE, root.dataset.theme);
}
