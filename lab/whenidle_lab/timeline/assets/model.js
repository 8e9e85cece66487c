
// The data of the page, and what belongs together in it.

const DATA = JSON.parse(byId("data").textContent);
const H = DATA.happenings;
const COUNT = H.step.length;
const KIND = Object.fromEntries(DATA.kinds.map((name, index) => [name, index]));

// What can be shown or left out as one, in the order of the buttons: name, words, variable of its colour.
const GROUPS = [
  ["turn", "turns"], ["maintenance", "maintenance"], ["wait", "waits"], ["call", "calls"], ["send", "sends"],
  ["control", "control"], ["occurrence", "occurrences"], ["queue", "queues"], ["commit", "commits"],
  ["clock", "clock"], ["life", "lives"], ["host", "host"], ["warning", "log"], ["note", "notes"],
];

const GROUP_OF = {
  "life-began": "life", "life-ended": "life", "faults-stopped": "life", "broken": "life",
  "commit-began": "commit", "commit-durable": "commit", "commit-ended": "commit", "read-failed": "commit",
  "clock": "clock", "call-began": "call", "call-ended": "call", "send-began": "send", "send-ended": "send",
  "turn-began": "turn", "turn-ended": "turn", "maintenance-began": "maintenance", "maintenance-ended": "maintenance",
  "claim-refused": "maintenance", "wait-began": "wait", "wait-ended": "wait", "cancel": "control",
  "dispose-began": "control", "dispose-ended": "control", "forked": "control", "host": "host", "log": "warning",
  "depth": "queue", "note": "note", "changed": "send",
};
const SPAN_GROUP = { turn: "turn", maintenance: "maintenance", wait: "wait", call: "call", send: "send", disposal: "control", commit: "commit", life: "life" };

const kindOf = (position) => DATA.kinds[H.kind[position]];
const isClaim = (position) => kindOf(position) === "host" && /^maintenance-/.test(H.detail[position].event);
const groupOf = (position) => (isClaim(position) ? "maintenance" : GROUP_OF[kindOf(position)] || "note");
const agentName = (agent) => (agent < 0 ? "" : DATA.agents[agent]);
const isBad = (position) => position === DATA.broken || (kindOf(position) === "life-ended" && H.detail[position].how === "crashed");

// Which spans and occurrences a happening belongs to.
const SPANS_AT = new Map();
const OCCURRENCES_AT = new Map();
const note = (map, position, item) => {
  if (position === null || position === undefined) return;
  if (map.has(position)) map.get(position).push(item); else map.set(position, [item]);
};
for (const span of DATA.spans) {
  for (const position of new Set([span.begin, span.end, span.durable])) note(SPANS_AT, position, span);
}
for (const occurrence of DATA.occurrences) {
  for (const position of new Set([occurrence.planned, occurrence.admitted, occurrence.dropped])) note(OCCURRENCES_AT, position, occurrence);
}

// Which sessions a commit is about: known once it is durable.
const COMMIT_AGENTS = new Map();
for (const [position, agent] of DATA.records) note(COMMIT_AGENTS, position, agent);

// Happenings that are a point and nothing that lasts.
const POINTS = new Set(["read-failed", "cancel", "forked", "claim-refused", "host", "log", "note", "faults-stopped", "broken", "changed"]);
const isPoint = (position) => POINTS.has(kindOf(position)) && !isClaim(position);

// What there is of each agent; of -1 what is nobody's.
const POINTS_OF = new Map(), SPANS_OF = new Map(), OCCURRENCES_OF = new Map(), RECORDS_OF = new Map();
for (let position = 0; position < COUNT; position += 1) if (isPoint(position)) note(POINTS_OF, H.agent[position], position);
for (const span of DATA.spans) note(SPANS_OF, span.agent, span);
for (const occurrence of DATA.occurrences) note(OCCURRENCES_OF, occurrence.agent, occurrence);
for (const record of DATA.records) note(RECORDS_OF, record[1], record);
const INBOX_OF = new Map(DATA.inboxes), MAILBOX_OF = new Map(DATA.mailboxes);

// Where virtual time stands still: moments, each from one position to another.
const MOMENTS = [];
for (let position = 0; position < COUNT; position += 1) {
  const last = MOMENTS[MOMENTS.length - 1];
  if (last && last.nanos === H.nanos[position] && last.life === H.life[position]) last.to = position;
  else MOMENTS.push({ nanos: H.nanos[position], life: H.life[position], from: position, to: position });
}

// What is shown: groups and agents that are switched on, and positions that match the text.
const shown = {
  groups: new Set(GROUPS.map(([name]) => name)),
  agents: new Set(DATA.agents.map((_, index) => index)),
  version: 0,
  text: "",
  matches: null,
};
let haystacks = null;

function search(text) {
  shown.text = text.trim().toLowerCase();
  shown.matches = null;
  if (!shown.text) return;
  haystacks ||= H.text.map((words, position) =>
    `${kindOf(position)} ${agentName(H.agent[position])} ${words} ${JSON.stringify(H.detail[position])}`.toLowerCase());
  shown.matches = new Uint8Array(COUNT);
  haystacks.forEach((words, position) => { if (words.includes(shown.text)) shown.matches[position] = 1; });
}

const isMatch = (position) => shown.matches === null || shown.matches[position] === 1;
const isOn = (position) => {
  if (position === DATA.broken) return true;
  if (!shown.groups.has(groupOf(position))) return false;
  const agent = H.agent[position];
  if (agent >= 0) return shown.agents.has(agent);
  const touched = COMMIT_AGENTS.get(position);
  return !touched || touched.some((one) => shown.agents.has(one));
};
const isListed = (position) => kindOf(position) !== "depth" && isOn(position) && isMatch(position);
const spanMatches = (span) => shown.matches === null || isMatch(span.begin) || isMatch(span.end) || (span.durable !== null && isMatch(span.durable));
const occurrenceMatches = (one) => shown.matches === null || `${one.source} ${one.prompt}`.toLowerCase().includes(shown.text)
  || [one.planned, one.admitted, one.dropped].some((position) => position !== null && isMatch(position));
