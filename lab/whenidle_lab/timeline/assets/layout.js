
// Rows: what lies above what. Spans that overlap get rows of their own, so that whatever overlaps is seen to.

const MOST_ROWS = 8;

function packed(spans) {
  const rows = [];
  for (const span of spans) {
    let row = rows.find((one) => one.end < span.begin);
    if (!row) {
      if (rows.length === MOST_ROWS) row = rows[span.begin % MOST_ROWS];
      else rows.push(row = { end: -1, spans: [] });
    }
    row.spans.push(span);
    row.end = Math.max(row.end, span.end);
  }
  return rows.map((row) => row.spans);
}

function layout() {
  const rows = [], heads = [];
  let y = 0;
  const on = (...groups) => groups.some((group) => shown.groups.has(group));
  const add = (row, height, label) => { rows.push({ ...row, y, height, label }); y += height; };
  const head = (text, isPlain, detail) => { heads.push({ y, text, isPlain, detail }); y += 7; };
  const spansOf = (agent, ...kinds) => (SPANS_OF.get(agent) || []).filter((span) => kinds.includes(span.kind) && on(SPAN_GROUP[span.kind]));
  const pack = (type, spans, height, label) => packed(spans).forEach((some, index) => add({ type, spans: some }, height, index ? "" : label));
  const pointsOf = (agent) => (POINTS_OF.get(agent) || []).filter((position) => on(groupOf(position)));

  if (on("life")) {
    head("process", true);
    pack("life", spansOf(-1, "life"), 24, "lives");
  }
  const loose = pointsOf(-1).filter((position) => kindOf(position) !== "broken");
  if (loose.length) {
    if (!on("life")) head("process", true);
    add({ type: "points", points: loose }, 19, "events");
  }
  y += 5;
  if (on("clock")) {
    head("wall clock", true);
    add({ type: "offset" }, DATA.offsets.length > 1 ? 50 : 24, "offset");
    y += 5;
  }
  if (on("commit")) {
    const commits = spansOf(-1, "commit").filter((span) => (span.durable === null || isOn(span.durable)));
    if (commits.length) {
      head("store", true);
      pack("commit", commits, 13, "commits");
      y += 5;
    }
  }
  const homeless = OCCURRENCES_OF.get(-1) || [];
  if (homeless.length && on("occurrence")) {
    head("tasks", true);
    add({ type: "occurrences", occurrences: homeless }, 40, "due, admitted");
    y += 5;
  }
  DATA.agents.forEach((name, agent) => {
    if (!shown.agents.has(agent)) return;
    head(name, false, agent);
    const top = y;
    pack("bar", spansOf(agent, "turn", "maintenance"), 23, "turns");
    const occurrences = OCCURRENCES_OF.get(agent) || [];
    if (occurrences.length && on("occurrence")) add({ type: "occurrences", occurrences }, 40, "due, admitted");
    pack("thin", spansOf(agent, "call", "send", "disposal"), 18, "calls, sends");
    pack("wait", spansOf(agent, "wait"), 15, "waits");
    const records = on("commit") ? RECORDS_OF.get(agent) || [] : [];
    const points = pointsOf(agent);
    if (records.length || points.length) add({ type: "events", records, points }, 20, "log, events");
    const inbox = INBOX_OF.get(agent), mailbox = MAILBOX_OF.get(agent);
    if (on("queue") && (inbox || mailbox)) {
      const most = [inbox, mailbox].filter(Boolean).flat().reduce((high, [, value]) => Math.max(high, value), 1);
      add({ type: "queue", inbox, mailbox, most }, 28, `inbox, up to ${most}`);
    }
    if (y === top) y += 20;
    y += 9;
  });
  return { rows, heads, height: y + 24 };
}

const range = (count) => Array.from({ length: count }, (_, index) => index);

function placeLabels(placed) {
  const labels = byId("labels");
  labels.replaceChildren();
  labels.style.height = `${placed.height}px`;
  for (const { y, text, isPlain } of placed.heads) {
    const line = element("hr"), name = element("h3", { class: isPlain ? "plain" : "", title: text }, text);
    line.style.top = `${y}px`;
    name.style.top = `${y + 8}px`;
    name.style.right = "72px";
    labels.append(line, name);
  }
  for (const row of placed.rows) {
    if (!row.label) continue;
    const small = element("span", {}, row.label);
    small.style.top = `${row.y + Math.min(row.height, 26) / 2 - 7}px`;
    labels.append(small);
  }
}
