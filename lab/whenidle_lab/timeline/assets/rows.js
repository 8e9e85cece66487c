
// Rows: how each sort of row is drawn.

const ROWS = { life: drawLives, bar: drawBars, thin: drawBars, wait: drawWaits, commit: drawCommits, occurrences: drawOccurrences, events: drawEvents, points: drawEvents, queue: drawQueue, offset: drawOffset };

// The spans of a row begin one after the other. One that would add nothing to what is drawn is passed over.
function eachSpan(p, row, draw) {
  let covered = -Infinity;
  for (const span of row.spans) {
    const [x0, x1] = spanPixels(span);
    if (x0 > view.width + 20) break;
    if (!inSight(x0, x1) || (x1 < covered + 0.75 && span.ending === "well" && span.begin !== selected)) continue;
    covered = Math.max(covered, x1);
    p.globalAlpha = spanMatches(span) ? 1 : DIM;
    draw(span, x0, x1);
    p.globalAlpha = 1;
  }
}

function drawLives(p, row, y) {
  eachSpan(p, row, (span, x0, x1) => {
    const isCrash = H.detail[span.end].how === "crashed", tall = row.height - 6;
    bar(p, x0, y + 3, x1 - x0, tall, colors.life, { hollow: true, cut: isCrash });
    const left = Math.max(x0, 0) + 7;
    p.font = BOLD;
    write(p, span.title, left, y + 3 + tall / 2, Math.min(x1, view.width) - left - 12, colors["ink-soft"]);
    p.font = FONT;
    if (isCrash) {
      dot(p, x1, y + 3 + tall / 2, 8, colors.bad);
      cross(p, x1, y + 3 + tall / 2, 3, colors["on-mark"]);
    }
    hit(x0, y + 3, x1 - 9, y + 3 + tall, { span });
    hit(x1 - 8, y, x1 + 8, y + row.height, { position: span.end });
  });
}

function drawBars(p, row, y) {
  const tall = row.height - 4;
  eachSpan(p, row, (span, x0, x1) => {
    const isThin = row.type === "thin", color = colors[SPAN_GROUP[span.kind]];
    bar(p, x0, y + 2, x1 - x0, tall, color, { hollow: isThin || span.is_claim, bad: span.ending === "badly", cut: span.ending === "cut" });
    const left = Math.max(x0, 0) + 6;
    write(p, span.title, left, y + 2.5 + tall / 2, Math.min(x1, view.width) - left - 4, isThin || span.is_claim ? colors.ink : colors["on-mark"]);
    hit(x0, y + 2, x1, y + 2 + tall, { span });
  });
}

function drawWaits(p, row, y) {
  const middle = Math.round(y + row.height / 2) + 0.5;
  eachSpan(p, row, (span, x0, x1) => {
    const color = span.ending === "badly" ? colors.bad : colors.wait;
    line(p, x0, middle, x1, middle, color, 1.5, [1, 3]);
    line(p, x0, middle - 3, x0, middle + 3, color, 1.5);
    if (span.ending === "cut") cross(p, x1, middle, 3, colors.bad, 1.5);
    else polygon(p, [[x1 - 5, middle - 3.5], [x1, middle], [x1 - 5, middle + 3.5]], color);
    hit(x0, y, x1, y + row.height, { span });
  });
}

function drawCommits(p, row, y) {
  const tall = row.height - 4, middle = y + row.height / 2;
  eachSpan(p, row, (span, x0, x1) => {
    const color = span.ending === "badly" ? colors.bad : colors.commit;
    bar(p, x0, y + 2, x1 - x0, tall, color, { hollow: true, cut: span.ending === "cut" });
    if (span.durable !== null) {
      const x = pixelAt(span.durable);
      p.fillStyle = color;
      p.beginPath();
      p.roundRect(x, y + 2, Math.max(2, x1 - x), tall, 2);
      p.fill();
      diamond(p, x, middle, 4, color);
    } else if (span.ending !== "cut") cross(p, (x0 + x1) / 2, middle, 3, colors.bad, 1.5);
    hit(x0, y + 1, x1, y + row.height - 1, { span });
  });
}

function drawOccurrences(p, row, y) {
  const high = y + 9, low = y + row.height - 11;
  let written = -Infinity;
  const labels = [];
  let before = "";
  row.occurrences.forEach((one, index) => {
    const planned = pixelAt(one.planned), due = one.due === null ? null : pixelAt(one.due);
    const admitted = one.admitted === null ? null : pixelAt(one.admitted), dropped = one.dropped === null ? null : pixelAt(one.dropped);
    const place = [planned, due, admitted, dropped].map((x) => x && Math.round(x)).join();
    if (place === before) return;
    before = place;
    const right = Math.max(...[planned, due, admitted, dropped].filter((x) => x !== null)) + 60;
    if (!inSight(planned, one.due !== null && admitted === null && dropped === null ? Infinity : right)) return;
    p.globalAlpha = occurrenceMatches(one) ? 1 : DIM;
    const isEarly = one.late_millis !== null && one.late_millis < 0, isLate = one.late_millis > 1000;
    const color = isEarly ? colors.bad : colors.occurrence;
    p.globalAlpha *= 0.55;
    line(p, planned, high, due === null ? dropped ?? admitted ?? planned + 14 : due, high, color, 1, [1, 3]);
    p.globalAlpha /= 0.55;
    line(p, planned, high - 3, planned, high + 3, color, 1);
    if (admitted !== null) {
      line(p, due === null ? admitted : due, high, admitted, low, color, isLate || isEarly ? 2.25 : 1.5);
      dot(p, admitted, low, 4.5, color);
      hit(admitted - 6, low - 6, admitted + 6, low + 6, { occurrence: one, position: one.admitted });
      const words = `${nameOf(one)}${one.late_millis ? ` ${signedSpan(one.late_millis / 1000)}` : ""}${one.missed ? ` (${one.missed} missed)` : ""}`;
      if (pixelsPerUnit() > 3 || view.name === "time") {
        const wide = textWidth(p, words), left = admitted + 8 + wide > view.width ? admitted - 8 - wide : admitted + 8;
        const next = row.occurrences[index + 1], nextAt = next ? pixelAt(next.due ?? next.admitted ?? COUNT) : Infinity;
        if (left > written && (nextAt < admitted - 3 || nextAt > left + wide)) {
          labels.push([words, left, low, isEarly ? colors["bad-ink"] : colors["ink-soft"], p.globalAlpha]);
          written = left + wide + 8;
        }
      }
    } else if (dropped !== null) {
      cross(p, dropped, high, 3.5, color, 1.5);
      hit(dropped - 6, high - 6, dropped + 6, high + 6, { occurrence: one, position: one.dropped });
    } else if (due !== null) {
      p.globalAlpha *= 0.7;
      line(p, due, high, Math.max(due + 10, pixelAt(COUNT - 1)), high, color, 1.5, [4, 4]);
      p.globalAlpha /= 0.7;
      const words = `${nameOf(one)}: not yet`, wide = textWidth(p, words);
      if (due - 4 > written && pixelsPerUnit() > 3) {
        labels.push([words, due - 4, low, colors["ink-faint"], p.globalAlpha]);
        written = due + wide + 4;
      }
    }
    if (due !== null) {
      dot(p, due, high, 4, color, true);
      hit(due - 6, high - 6, due + 6, high + 6, { occurrence: one });
    }
    hit(planned - 4, high - 5, planned + 4, high + 5, { occurrence: one, position: one.planned });
    p.globalAlpha = 1;
  });
  for (const [words, left, at, color, alpha] of labels) {
    p.globalAlpha = alpha;
    label(p, words, left, at, color);
    p.globalAlpha = 1;
  }
}

// Ids of reminders are short; those of tasks are not, but they have titles.
const nameOf = (occurrence) => (occurrence.source.length <= 14 ? occurrence.source : occurrence.prompt.slice(0, 24));

const POINT_COLORS = { note: "note", log: "warning", host: "host", cancel: "control", forked: "control", "claim-refused": "maintenance", changed: "send", "read-failed": "bad", "faults-stopped": "well", broken: "bad" };

function drawEvents(p, row, y) {
  const middle = y + row.height / 2;
  let last = -Infinity;
  for (const [position, , types] of row.records || []) {
    const x = pixelAt(position);
    if (!inSight(x, x) || x - last < 0.75) continue;
    p.globalAlpha = isMatch(position) ? 1 : DIM;
    line(p, x, middle - 5, x, middle + 5, colors.record, 2);
    last = x;
    hit(x - 3, middle - 6, x + 3, middle + 6, { position, words: types });
    p.globalAlpha = 1;
  }
  for (const position of row.points) {
    const x = pixelAt(position), kind = kindOf(position);
    if (!inSight(x, x)) continue;
    p.globalAlpha = isMatch(position) ? 1 : DIM;
    const isGrave = kind === "host" && /fault|fail|restart/.test(H.detail[position].event);
    const color = isGrave ? colors.bad : colors[POINT_COLORS[kind]];
    if (kind === "log") triangle(p, x, middle, 5.5, color);
    else if (kind === "cancel" || kind === "read-failed" || kind === "claim-refused") cross(p, x, middle, 4, color);
    else if (kind === "host") dot(p, x, middle, 3.5, color, !isGrave);
    else diamond(p, x, middle, 5.5, color);
    hit(x - 6, middle - 7, x + 6, middle + 7, { position });
    p.globalAlpha = 1;
  }
}

function steps(curve, start = 0) {
  const points = curve.map(([position, value], index) => ({ x: pixelAt(position), value, position, next: index + 1 < curve.length ? pixelAt(curve[index + 1][0]) : pixel(extent()[1]) }));
  if (points.length && points[0].position > 0) points.unshift({ x: pixelAt(0), value: start, position: 0, next: points[0].x });
  return points.filter((one) => inSight(one.x, one.next));
}

function drawQueue(p, row, y) {
  const base = y + row.height - 4, scale = (row.height - 9) / row.most;
  line(p, 0, Math.round(base) + 0.5, view.width, Math.round(base) + 0.5, colors.rule);
  for (const one of row.inbox ? steps(row.inbox) : []) {
    const high = one.value * scale;
    p.fillStyle = colors.queue;
    p.globalAlpha = 0.35;
    p.fillRect(one.x, base - high, one.next - one.x, high);
    p.globalAlpha = 1;
    if (high) p.fillRect(one.x, base - high - 1, one.next - one.x, 1.5);
    hit(one.x, y, one.next, base, { position: one.position, words: `${one.value} in the inbox` });
  }
  for (const one of row.mailbox ? steps(row.mailbox) : []) {
    if (!one.value) continue;
    const high = Math.round(base - one.value * scale);
    line(p, one.x, high, Math.max(one.next, one.x + 2), high, colors.turn, 1.5);
    line(p, one.x, base, one.x, high, colors.turn, 1);
    hit(one.x - 2, high - 3, Math.max(one.next, one.x + 4), base, { position: one.position, words: `${one.value} in the mailbox` });
  }
}

// Steps of a millisecond and of a year have to be seen in the same curve.
const squeezed = (value) => Math.sign(value) * Math.log10(1 + Math.abs(value));
const OFFSETS = DATA.offsets.reduce(([low, high], [, value]) => [Math.min(low, squeezed(value)), Math.max(high, squeezed(value))], [0, 0]);

function drawOffset(p, row, y) {
  const [low, high] = OFFSETS;
  const top = y + 13, tall = row.height - 22, level = (value) => (high === low ? y + row.height / 2 : top + tall * (1 - (squeezed(value) - low) / (high - low)));
  const zero = Math.round(level(0)) + 0.5;
  line(p, 0, zero, view.width, zero, colors["rule-strong"], 1, [3, 4]);
  if (high === low) {
    label(p, "the wall clock and monotonic time never parted", 12, zero, colors["ink-faint"]);
    return;
  }
  const shownSteps = steps(DATA.offsets);
  p.beginPath();
  shownSteps.forEach((one, index) => {
    const at = level(one.value);
    if (index === 0) p.moveTo(one.x, at); else p.lineTo(one.x, at);
    p.lineTo(one.next, at);
  });
  p.strokeStyle = colors.clock;
  p.lineWidth = 2;
  p.stroke();
  let written = -Infinity;
  for (const one of shownSteps) {
    const kind = kindOf(one.position), at = level(one.value);
    hit(one.x, y, one.next, y + row.height, { position: one.position, words: `the wall clock is ${aheadText(one.value)}` });
    if (kind === "clock") {
      dot(p, one.x, at, 3.5, colors.clock);
      hit(one.x - 6, at - 6, one.x + 6, at + 6, { position: one.position });
    }
    if (kind !== "clock" && !(kind === "life-began" && H.detail[one.position].down)) continue;
    const words = kind === "clock" ? clockWords(H.detail[one.position]) : `down ${spanText(H.detail[one.position].down)}`;
    const above = one.value <= 0 && at > y + row.height / 2 ? at - 9 : at - 8;
    const wide = textWidth(p, words), left = one.x + 6 + wide > view.width ? one.x - 6 - wide : one.x + 6;
    if (left < written) continue;
    label(p, words, left, above, colors["ink-soft"]);
    written = left + wide + 8;
  }
}

function clockWords(detail) {
  if (detail.how === "drift" && !detail.by) return "no drift";
  if (detail.how === "drift") return `drift ${detail.by > 0 ? "+" : ""}${detail.by} ppm`;
  return `${detail.how} ${signedSpan(detail.by)}${detail.announced ? "" : ", unannounced"}`;
}
