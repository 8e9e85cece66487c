
// The page at work: what people do with pointer, wheel and keys, and what then is drawn again.

let isDrawing = false;

function draw() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    drawNow();
  });
}

function drawNow() {
  drawMarks();
  const first = positionFrom(view.from), last = Math.max(first, positionFrom(view.to) - 1);
  byId("marks").setAttribute("aria-description", `in sight: ${first} to ${last} of ${COUNT}`);
  drawAxis();
  drawOverview();
}

function select(position) {
  selected = position;
  showSelected();
  if (position !== null) listReveal(position);
  drawList();
  draw();
}

function refilter() {
  shown.version += 1;
  placed = layout();
  placeLabels(placed);
  fillList();
  draw();
}

function setAxis(name) {
  switchAxis(name);
  for (const button of document.querySelectorAll("[data-axis]")) button.setAttribute("aria-checked", String(button.dataset.axis === name));
  byId("axis-name").textContent = "virtual time";
  draw();
}

// What is under the pointer: the smallest mark there, so that small ones on large ones can be reached.
function targetAt(x, y) {
  let best = null, least = Infinity;
  for (const one of hits) {
    if (x < one.x0 - 2 || x > one.x1 + 2 || y < one.y0 - 1 || y > one.y1 + 1) continue;
    const size = (one.x1 - one.x0) * (one.y1 - one.y0);
    if (size <= least) [best, least] = [one, size];
  }
  return best;
}

const positionOf = (target) => target.position ?? (target.span ? target.span.begin : target.occurrence.admitted ?? target.occurrence.planned);

// Pointer and wheel -----------------------------------------------------------------------------

function listenToMarks() {
  const canvas = byId("marks"), lanes = byId("lanes");
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const dx = drag.x - event.clientX, dy = drag.y - event.clientY;
      if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
      canvas.classList.add("grabbing");
      pan(dx);
      lanes.scrollTop += dy;
      drag = { x: event.clientX, y: event.clientY, moved: true };
      hideTip();
      draw();
      return;
    }
    const target = targetAt(event.offsetX, event.offsetY);
    canvas.classList.toggle("over", target !== null);
    if (target) showTip(target, event.clientX, event.clientY); else hideTip();
  });
  canvas.addEventListener("pointerup", (event) => {
    const wasClick = drag && !drag.moved;
    drag = null;
    canvas.classList.remove("grabbing");
    if (!wasClick) return;
    const target = targetAt(event.offsetX, event.offsetY);
    select(target ? positionOf(target) : null);
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey) lanes.scrollTop += (event.deltaY || event.deltaX) * lines;
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX * lines);
    else zoom(Math.exp(clamp(event.deltaY * lines, -240, 240) * 0.0022), event.offsetX);
    hideTip();
    draw();
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => { zoom(0.4, event.offsetX); draw(); });
  lanes.addEventListener("scroll", draw);
}

function listenToOverview() {
  const canvas = byId("overview");
  let isDown = false;
  const centre = (event) => {
    const { from, to } = overview, unit = from + (event.offsetX / view.width) * (to - from), size = view.to - view.from;
    show(unit - size / 2, unit + size / 2);
    draw();
  };
  canvas.addEventListener("pointerdown", (event) => { isDown = true; canvas.setPointerCapture(event.pointerId); centre(event); });
  canvas.addEventListener("pointermove", (event) => { if (isDown) centre(event); });
  canvas.addEventListener("pointerup", () => { isDown = false; });
}

// Keys ------------------------------------------------------------------------------------------

const KEYS = [
  ["← →", "the happening before, after"], ["Home End", "the first, the last"], ["+ −", "zoom in, out (also the wheel)"], ["a d", "move left, right (also dragging)"],
  ["w s", "scroll the lanes (also Shift and the wheel)"], ["0", "show everything"], ["Enter", "zoom to what is selected"], ["b", "go to where it broke"],
  ["1 2 3", "axis: order, rounds, time"], ["/", "filter by text"], ["t", "light or dark"], ["Esc", "select nothing"], ["?", "these keys"],
];

const MARKS = [
  ["red edge", "it raised, was refused or cancelled, or the store failed it"], ["torn edge", "its process was gone before it ended"],
  ["light claim", "the runtime's own maintenance, for a delivery"], ["○ ― ●", "due, and admitted: the more it slopes, the later"],
  ["◆ in a commit", "durable from here on"], ["filled steps", "messages in the durable inbox; the line above: in the mailbox, in memory"],
  ["hatched", "no process lives"],
];

function walk(by) {
  const index = selected === null ? -1 : listed.findIndex((one) => one >= selected);
  let next = selected === null ? (by > 0 ? positionsFromSight() : listed.length - 1) : index < 0 ? listed.length - 1 : index + by;
  if (selected !== null && by > 0 && index >= 0 && listed[index] > selected) next = index;
  go(listed[clamp(next, 0, listed.length - 1)]);
}

const positionsFromSight = () => Math.max(0, listed.findIndex((one) => unitAt(one) >= view.from));

function go(position) {
  if (position === undefined) return;
  select(position);
  reveal(position);
  drawNow();
  const mark = hits.find((one) => one.position === position || (one.span && one.span.begin === position));
  if (mark && document.activeElement === byId("marks")) {
    const box = byId("marks").getBoundingClientRect();
    showTip(mark, box.left + Math.max(0, mark.x0), box.top + mark.y1 - 8);
  } else hideTip();
}

function zoomToSelected() {
  if (selected === null) return;
  const span = (SPANS_AT.get(selected) || []).find((one) => one.kind !== "life");
  const from = unitAt(span ? span.begin : selected), to = unitAt(span ? span.end : selected), margin = Math.max((to - from) * 0.25, axis().least / 2);
  show(from - margin, to + margin);
}

const ACTIONS = {
  ArrowRight: () => walk(1), ArrowLeft: () => walk(-1), Home: () => go(listed[0]), End: () => go(listed[listed.length - 1]),
  "+": () => zoom(0.7, view.width / 2), "=": () => zoom(0.7, view.width / 2), "-": () => zoom(1.43, view.width / 2), "−": () => zoom(1.43, view.width / 2),
  a: () => pan(-view.width / 5), d: () => pan(view.width / 5),
  w: () => { byId("lanes").scrollTop -= 80; }, s: () => { byId("lanes").scrollTop += 80; },
  0: () => show(...extent()), Enter: zoomToSelected, b: () => { if (DATA.broken !== null) goToBroken(); },
  1: () => setAxis("order"), 2: () => setAxis("rounds"), 3: () => setAxis("time"),
  "/": () => byId("search").focus(), t: switchTheme, Escape: () => { hideTip(); select(null); }, "?": () => byId("keys").showModal(),
};

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    const { target } = event, isTyping = target.matches("input, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    if (isTyping) {
      if (event.key === "Escape") byId("marks").focus();
      return;
    }
    if (event.key === "Enter" && target !== byId("marks") && target !== byId("list")) return;
    if (target.closest("[role=radiogroup]") && event.key.startsWith("Arrow")) return;
    const action = Object.hasOwn(ACTIONS, event.key) ? ACTIONS[event.key] : null;
    if (!action) return;
    event.preventDefault();
    action();
    draw();
  });
}

// Buttons ---------------------------------------------------------------------------------------

function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

function setTheme(isNowDark) {
  document.documentElement.dataset.theme = isNowDark ? "dark" : "light";
  byId("theme").textContent = isNowDark ? "☀" : "☾";
  readColors();
  draw();
}

function switchTheme() {
  setTheme(!isDark());
}

function listenToButtons() {
  for (const button of document.querySelectorAll("[data-axis]")) button.addEventListener("click", () => setAxis(button.dataset.axis));
  const axes = [...document.querySelectorAll("[data-axis]")];
  document.querySelector("[role=radiogroup]").addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    const next = axes[(axes.indexOf(document.activeElement) + by + axes.length) % axes.length];
    next.focus();
    next.click();
    event.preventDefault();
  });
  byId("in").addEventListener("click", () => { zoom(0.6, view.width / 2); draw(); });
  byId("out").addEventListener("click", () => { zoom(1.67, view.width / 2); draw(); });
  byId("fit").addEventListener("click", () => { show(...extent()); draw(); });
  byId("theme").addEventListener("click", switchTheme);
  byId("help").addEventListener("click", () => byId("keys").showModal());
  byId("keys").addEventListener("click", () => byId("keys").close());
  const preference = matchMedia("(prefers-color-scheme: dark)");
  preference.addEventListener("change", () => setTheme(preference.matches));
  setTheme(preference.matches);
}

function fillFacts() {
  const { facts, finding } = DATA, items = [];
  if (DATA.broken !== null || finding) items.push(element("li", {}, element("span", { class: "broke" }, `broken: ${finding ? finding.name : "the run"}`)));
  else items.push(element("li", { class: "held" }, "everything held"));
  const fact = (value, words) => items.push(element("li", {}, element("b", {}, String(value)), ` ${words}`));
  fact(spanText(facts.seconds), "virtual");
  fact(facts.rounds.toLocaleString("en"), "rounds");
  fact(facts.lives, facts.lives === 1 ? "life" : "lives");
  fact(facts.choices.toLocaleString("en"), `choices, ${facts.chosen} not quiet`);
  if (facts.faults.length) items.push(element("li", { class: "fault" }, facts.faults.join(", ")));
  byId("facts").replaceChildren(...items);
}

function fillFilters() {
  const kinds = byId("kinds"), sheet = document.querySelector("#agents .sheet"), used = new Set(range(COUNT).map(groupOf));
  if (DATA.occurrences.length) used.add("occurrence");
  if (DATA.inboxes.length || DATA.mailboxes.length) used.add("queue");
  for (const [name, words] of GROUPS) {
    if (!used.has(name)) continue;
    const button = element("button", { type: "button", "aria-pressed": "true", "data-kind": name, title: "Click: show or hide. Double click: this one only." }, element("i", { color: `var(--${name})` }), words);
    const mark = () => { for (const one of kinds.children) one.setAttribute("aria-pressed", String(shown.groups.has(one.dataset.kind))); };
    button.addEventListener("click", () => {
      if (shown.groups.has(name)) shown.groups.delete(name); else shown.groups.add(name);
      mark();
      refilter();
    });
    button.addEventListener("dblclick", () => {
      const isAlone = shown.groups.size === 1 && shown.groups.has(name);
      shown.groups = new Set(isAlone ? GROUPS.map(([one]) => one) : [name]);
      mark();
      refilter();
    });
    kinds.append(button);
  }
  const boxes = DATA.agents.map((name, agent) => {
    const box = element("input", { type: "checkbox", "data-agent": String(agent) });
    box.checked = true;
    box.addEventListener("change", () => {
      if (box.checked) shown.agents.add(agent); else shown.agents.delete(agent);
      nameAgents();
      refilter();
    });
    return box;
  });
  const nameAgents = () => {
    const some = [...shown.agents].sort((a, b) => a - b);
    const words = some.length === DATA.agents.length ? "All agents" : some.length === 1 ? agentName(some[0]) : `${some.length} agents`;
    document.querySelector("#agents summary").textContent = words;
  };
  const all = element("button", { type: "button", onclick: () => {
    const isAll = shown.agents.size === DATA.agents.length;
    shown.agents = new Set(isAll ? [] : DATA.agents.keys());
    for (const box of boxes) box.checked = !isAll;
    nameAgents();
    refilter();
  } }, "all, none");
  sheet.append(all, ...boxes.map((box, agent) => element("label", {}, box, DATA.agents[agent])));
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest("#agents")) byId("agents").open = false; });
  let timer = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { search(byId("search").value); refilter(); }, COUNT > 2000 ? 120 : 0);
  });
}

function listenToList() {
  const list = byId("list");
  list.addEventListener("scroll", drawList);
  list.addEventListener("click", (event) => {
    const row = event.target.closest("[data-position]");
    if (!row) return;
    const position = Number(row.dataset.position);
    select(position);
    reveal(position);
  });
}

function fillKeys() {
  const list = element("dl");
  for (const [key, words] of KEYS) list.append(element("dt", {}, ...key.split(" ").flatMap((one) => [element("kbd", {}, one), " "])), element("dd", {}, words));
  const marks = element("dl");
  for (const [name, words] of MARKS) marks.append(element("dt", {}, name), element("dd", {}, words));
  byId("keys").replaceChildren(element("h2", {}, "Marks"), marks, element("h2", {}, "Keys"), list);
}

// What is seen first: all of a short run; of a long one what led to where it broke, or the beginning.
function firstView() {
  const [from, to] = extent(), room = view.width / 9;
  if (to - from <= room * 1.35) show(from, to);
  else if (DATA.broken !== null) show(unitAt(DATA.broken) - room * 0.86, unitAt(DATA.broken) + room * 0.14);
  else show(from, to);
}

function main() {
  fillFacts();
  fillFilters();
  fillKeys();
  listenToMarks();
  listenToOverview();
  listenToKeys();
  listenToButtons();
  listenToList();
  showFinding();
  placeLabels(placed);
  drawMarks();
  setAxis("order");
  firstView();
  fillList();
  select(DATA.broken);
  new ResizeObserver(() => { drawList(); draw(); }).observe(byId("lanes"));
  drawNow();
  document.documentElement.dataset.ready = "true";
}

main();
