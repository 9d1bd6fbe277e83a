// Plays the run that the tab Chaos has put into the session storage, as a file of `broker-sim chaos --page` does.

import { h } from "./page/dom.js";
import { replay } from "./page/replay.js";

const run = sessionStorage.getItem("run");
if (run) await replay(run);
else document.getElementById("page").append(h("p", { class: "ask" }, "There is no run here: open it by the button of a failing run."));
