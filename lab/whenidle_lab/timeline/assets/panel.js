
// Beside the lanes: the finding, what is selected, what the pointer is over, and the list of happenings.

const colorOf = (position) => `var(--${isBad(position) ? "bad" : groupOf(position)})`;
const momentText = (position) => `${spanText(H.nanos[position] / 1e9)}, round ${H.step[position]}`;
const timeBetween = (from, to) => spanText((H.nanos[to] - H.nanos[from]) / 1e9);

function chip(position) {
  return element("i", { color: colorOf(position) });
}

function showFinding() {
  const box = byId("finding"), { finding } = DATA;
  if (!finding) return;
  box.hidden = false;
  const where = DATA.broken === null ? null : element("button", { type: "button", id: "to-broken", onclick: goToBroken }, `Go to round ${H.step[DATA.broken]}`);
  const sort = { invariant: "does not hold", error: "was raised", stuck: "did not end", livelock: "without end", diverged: "differ", unstable: "differs" }[finding.kind] || finding.kind;
  box.replaceChildren(element("h2", {}, `${finding.name} ${sort}`), element("p", {}, plain(finding.text)), ...(where ? [where] : []));
}

function goToBroken() {
  const unit = unitAt(DATA.broken), size = Math.min(view.to - view.from, extent()[1] - extent()[0]);
  show(unit - size * 0.86, unit + size * 0.14);
  select(DATA.broken);
}

function showSelected() {
  const box = byId("selected");
  if (selected === null) {
    box.replaceChildren(element("p", {}, "Point at a mark to see what it is. Click it, or go on with the arrow keys, to see all of it here."));
    return;
  }
  const position = selected, agent = H.agent[position], offset = offsetAt(position);
  const facts = [["virtual", exactText(H.nanos[position] / 1e9)], ["wall", wallText(H.wall[position]) + (offset ? `, ${aheadText(offset)}` : "")],
    ["round", String(H.step[position])], ["life", String(H.life[position] + 1)], ["in the trace", `no. ${position}`]];
  if (agent >= 0) facts.unshift(["agent", agentName(agent)]);
  const jumps = [];
  const jump = (words, to) => jumps.push(element("button", { type: "button", onclick: () => { select(to); reveal(to); draw(); } }, words));
  for (const span of SPANS_AT.get(position) || []) {
    if (span.kind === "life") continue;
    facts.push([span.kind, `${timeBetween(span.begin, span.end)}, ${H.step[span.end] - H.step[span.begin]} rounds${span.ending === "cut" ? ", cut off" : ""}`]);
    if (span.begin !== position) jump("its beginning", span.begin);
    if (span.durable !== null && span.durable !== position) jump("durable", span.durable);
    if (span.end !== position) jump("its end", span.end);
  }
  for (const one of OCCURRENCES_AT.get(position) || []) {
    facts.push(["occurrence", occurrenceWords(one)]);
    if (one.planned !== position) jump("planned", one.planned);
    if (one.admitted !== null && one.admitted !== position) jump("admitted", one.admitted);
  }
  const list = element("dl");
  for (const [name, value] of facts) list.append(element("dt", {}, name), element("dd", {}, value));
  const detail = H.detail[position];
  const isBroken = position === DATA.broken;
  const parts = [element("div", { class: "kind" }, chip(position), kindOf(position)), element("h2", {}, isBroken ? "Here it broke." : H.text[position]), list];
  if (jumps.length) parts.push(element("div", { class: "go" }, ...jumps));
  if (Object.keys(detail).length && !isBroken) parts.push(element("pre", {}, plain(JSON.stringify(readable(detail), null, 1))));
  box.replaceChildren(...parts);
  box.scrollTop = 0;
}

// Records hold JSON as text; show what it says.
function readable(value) {
  if (Array.isArray(value)) return value.map(readable);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => {
    if ((key === "data" || key === "task") && typeof one === "string") {
      try { return [key, JSON.parse(one)]; } catch { return [key, one]; }
    }
    return [key, readable(one)];
  }));
}

function offsetAt(position) {
  let found = 0;
  for (const [from, value] of DATA.offsets) { if (from > position) break; found = value; }
  return found;
}

function occurrenceWords(one) {
  const words = [`${one.source} “${one.prompt}”, due ${wallText(one.due_millis)}`];
  if (one.admitted !== null) {
    const late = one.late_millis / 1000;
    words.push(late === 0 ? "admitted on time" : late > 0 ? `admitted ${spanText(late)} late` : `admitted ${spanText(-late)} too early`);
  } else if (one.dropped !== null) words.push("dropped before it was admitted");
  else words.push(one.due === null ? "not due in this run" : "due, and not admitted");
  if (one.missed) words.push(`stands for ${one.missed} missed`);
  return words.join("; ");
}

// The tip ---------------------------------------------------------------------------------------

function tipOf(target) {
  const { span, occurrence, position, words } = target;
  if (occurrence) {
    return [element("b", {}, `${occurrence.source} “${occurrence.prompt}”`), element("div", { class: "soft" }, occurrenceWords(occurrence).split(", ").slice(1).join(", ")),
      position === undefined ? null : element("div", { class: "soft" }, momentText(position))];
  }
  if (span) {
    const who = agentName(span.agent);
    return [element("b", {}, (who ? `${who}: ` : "") + span.title),
      element("div", { class: "soft" }, `from ${momentText(span.begin)}`),
      element("div", { class: "soft" }, `to ${momentText(span.end)} (${timeBetween(span.begin, span.end)})`),
      span.durable === null ? null : element("div", { class: "soft" }, H.text[span.durable]),
      element("div", { class: span.ending === "well" ? "soft" : "bad" }, span.ending === "cut" ? "its process was gone before it ended" : H.text[span.end]),
      element("div", { class: "soft" }, wallText(H.wall[span.begin]))];
  }
  const who = agentName(H.agent[position]);
  return [element("b", { class: isBad(position) ? "bad" : "" }, words || (who ? `${who}: ` : "") + H.text[position]),
    words ? element("div", { class: "soft" }, H.text[position]) : null,
    element("div", { class: "soft" }, momentText(position)), element("div", { class: "soft" }, wallText(H.wall[position]))];
}

let tipTarget = null, tipBox = null;

function showTip(target, x, y) {
  const tip = byId("tip");
  if (target !== tipTarget) {
    tip.replaceChildren(...tipOf(target).filter(Boolean));
    tip.hidden = false;
    [tipTarget, tipBox] = [target, tip.getBoundingClientRect()];
  }
  const box = tipBox;
  tip.style.left = `${clamp(x + 14, 4, window.innerWidth - box.width - 8)}px`;
  tip.style.top = `${y + 18 + box.height > window.innerHeight ? Math.max(4, y - box.height - 12) : y + 18}px`;
}

function hideTip() {
  tipTarget = null;
  byId("tip").hidden = true;
}

// The list: only the rows in sight are elements --------------------------------------------------

const ROW = 22;
let listed = [];

function fillList() {
  listed = range(COUNT).filter(isListed);
  const all = shown.matches === null && shown.groups.size === GROUPS.length && shown.agents.size === DATA.agents.length;
  byId("count").textContent = all ? String(listed.length) : `${listed.length} of ${range(COUNT).filter((one) => kindOf(one) !== "depth").length}`;
  byId("rows").style.height = `${listed.length * ROW}px`;
  drawList();
}

function drawList() {
  const list = byId("list"), first = Math.max(0, Math.floor(list.scrollTop / ROW) - 4);
  const last = Math.min(listed.length, first + Math.ceil(list.clientHeight / ROW) + 10), rows = [];
  for (let index = first; index < last; index += 1) {
    const position = listed[index], who = agentName(H.agent[position]), before = index ? listed[index - 1] : null;
    const classes = [position === selected ? "on" : "", position === DATA.broken ? "bad" : "",
      before !== null && H.nanos[before] !== H.nanos[position] ? "turned" : ""].filter(Boolean).join(" ");
    const row = element("div", { class: classes, role: "option", "aria-selected": String(position === selected), "data-position": String(position), title: H.text[position] },
      element("span", { class: "when" }, String(H.step[position])), chip(position),
      element("span", { class: "who" }, who), element("span", {}, H.text[position]));
    row.style.top = `${index * ROW}px`;
    rows.push(row);
  }
  byId("rows").replaceChildren(...rows);
}

function listReveal(position) {
  const index = listed.findIndex((one) => one >= position), list = byId("list");
  if (index < 0) return;
  const top = index * ROW;
  if (top < list.scrollTop || top > list.scrollTop + list.clientHeight - 2 * ROW) list.scrollTop = top - list.clientHeight * 0.5;
}
