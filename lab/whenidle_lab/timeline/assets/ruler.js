
// The ruler above the lanes: virtual time, the wall clock, rounds, and where it broke.

function drawAxis() {
  const canvas = byId("axis"), width = view.width, p = pen(canvas, width, 60);
  canvas.style.width = `${width}px`;
  for (const y of [20.5, 40.5]) line(p, 0, y, width, y, colors.rule);
  if (view.name === "time") drawTicks(p, width); else drawMoments(p, width);
  drawRounds(p);
  if (DATA.broken !== null) drawFlag(p, width);
}

function drawMoments(p, width) {
  let wallBefore = null, written = -Infinity, gapWritten = -Infinity, ticked = -Infinity;
  const first = Math.max(0, positionFrom(view.from) - 1);
  for (let index = Math.max(0, MOMENTS.findIndex((one) => one.to >= first)); index < MOMENTS.length; index += 1) {
    const moment = MOMENTS[index], next = MOMENTS[index + 1];
    const x0 = pixelAt(moment.from), x1 = pixelAt(moment.to), end = next ? pixelAt(next.from) : width + 200;
    if (x0 > width) break;
    const left = Math.max(x0, 4);
    if (left < written || x0 - ticked < 6) continue;
    const room = roomForMoment(p, index, left, width);
    ticked = x0;
    line(p, Math.round(x0) + 0.5, 3, Math.round(x0) + 0.5, 38, colors["rule-strong"]);
    p.font = BOLD;
    const used = writeWhole(p, [momentLabel(index)], left + 5, 11, room, colors.ink);
    p.font = FONT;
    if (!used) continue;
    const wall = H.wall[moment.from], walls = [wallShort(wall, wallBefore), wallText(wall).slice(11)];
    const usedBelow = writeWhole(p, walls, left + 5, 31, room, colors["ink-soft"]);
    if (usedBelow) wallBefore = wall;
    written = left + Math.max(used, usedBelow) + 8;
    if (next && view.name === "order") {
      const passed = timeBefore(next.from), gap = `${next.life === moment.life ? "" : "no process "}+${spanText(passed)}`, middle = (x1 + end) / 2;
      const wide = textWidth(p, gap);
      if (passed > 0 && end - x1 > wide + 8 && middle - wide / 2 > Math.max(left + used + 12, gapWritten)) {
        write(p, gap, middle - wide / 2, 11, wide + 1, colors["ink-faint"]);
        gapWritten = middle + wide / 2 + 6;
      }
    }
  }
}

function momentLabel(index) {
  const words = (one) => (one ? spanText(one.nanos / 1e9) : ""), mine = words(MOMENTS[index]);
  const isCommon = mine === words(MOMENTS[index - 1]) || mine === words(MOMENTS[index + 1]);
  return isCommon ? exactText(MOMENTS[index].nanos / 1e9) : mine;
}

// How far the words of a moment may run: to the next one; or on, over such as have no room for words themselves.
function roomForMoment(p, index, left, width) {
  const needed = (one) => textWidth(p, momentLabel(one)) + 16;
  for (let next = index + 1; next < MOMENTS.length; next += 1) {
    const x = pixelAt(MOMENTS[next].from);
    if (x - left > 160) break;
    const after = next + 1 < MOMENTS.length ? pixelAt(MOMENTS[next + 1].from) : width;
    if (next === index + 1 && x - left >= needed(index)) return x - left - 8;
    if (after - x > 24 && after - x >= needed(next)) return x - left - 8;
  }
  return Math.min(width, left + 160) - left - 8;
}

const NICE = [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
  3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 2592000, 8640000, 31536000];

function drawTicks(p, width) {
  const apart = (view.to - view.from) * (150 / width), step = NICE.find((one) => one >= apart) || Math.ceil(apart / 31536000) * 31536000;
  let wallBefore = null;
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    if (at < -step / 1e6) continue;
    const x = pixel(at), wall = wallAtSeconds(at);
    line(p, Math.round(x) + 0.5, 3, Math.round(x) + 0.5, 38, colors["rule-strong"]);
    p.font = BOLD;
    write(p, spanText(Number(at.toPrecision(12))), x + 5, 11, 130, colors.ink);
    p.font = FONT;
    if (wall !== null && write(p, wallShort(wall, wallBefore), x + 5, 31, 140, colors["ink-soft"])) wallBefore = wall;
  }
}

// What the wall showed at a time: as at the happening before it, and on from there.
function wallAtSeconds(seconds) {
  const position = positionFrom(seconds + 1e-9) - 1;
  if (position < 0 || position >= COUNT) return null;
  return Math.round(H.wall[position] + (seconds - AXES.time.units[position]) * 1000);
}

function drawRounds(p) {
  let written = -Infinity;
  for (let i = Math.max(0, positionFrom(view.from) - 1); i < COUNT; i += 1) {
    if (i && H.step[i] === H.step[i - 1]) continue;
    const x = pixelAt(i);
    if (x > view.width) break;
    if (x < written) continue;
    const words = String(H.step[i]);
    line(p, Math.round(x) + 0.5, 41, Math.round(x) + 0.5, 45, colors["rule-strong"]);
    write(p, words, x + 3, 51, 60, colors["ink-faint"]);
    written = x + textWidth(p, words) + 14;
  }
}

function drawFlag(p, width) {
  const x = pixelAt(DATA.broken);
  if (x < -10 || x > width + 10) return;
  p.font = BOLD;
  const words = `broken: ${DATA.finding ? DATA.finding.name : "the run"}`, wide = Math.min(textWidth(p, words), 260) + 16;
  const left = x + wide + 4 > width ? x - wide : x;
  p.beginPath();
  p.roundRect(left, 41, wide, 18, left < x ? [5, 0, 0, 5] : [0, 5, 5, 0]);
  p.fillStyle = colors.bad;
  p.fill();
  write(p, words, left + 8, 50.5, wide - 12, colors["on-mark"]);
  p.font = FONT;
  line(p, x, 41, x, 60, colors.bad, 2.5);
}
