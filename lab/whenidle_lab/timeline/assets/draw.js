
// Drawing the lanes: each frame draws what is in sight, and notes where, for the pointer.

let placed = layout();
let hits = [];
let selected = null;

const DIM = 0.13;
const inSight = (x0, x1) => x1 >= -20 && x0 <= view.width + 20;

function hit(x0, y0, x1, y1, target) {
  hits.push({ x0, y0, x1, y1, ...target });
}

function spanPixels(span) {
  const pad = axis().pad, x0 = pixel(unitAt(span.begin) - pad), x1 = pixel(unitAt(span.end) + pad);
  return [x0, Math.max(x1, x0 + 3)];
}

function drawMarks() {
  const canvas = byId("marks"), lanes = byId("lanes");
  view.width = Math.max(50, lanes.clientWidth - 158);
  const height = lanes.clientHeight, top = lanes.scrollTop;
  canvas.style.width = `${view.width}px`;
  canvas.style.height = `${height}px`;
  const p = pen(canvas, view.width, height);
  hits = [];
  drawGround(p, height);
  for (const { y } of placed.heads) line(p, 0, Math.round(y - top) + 0.5, view.width, Math.round(y - top) + 0.5, colors.rule);
  for (const row of placed.rows) {
    const y = row.y - top;
    if (y + row.height < 0 || y > height) continue;
    ROWS[row.type](p, row, y);
  }
  drawUprights(p, height);
  if (selected !== null) drawSelection(p, height);
}

// What lies behind everything: moments in turn, and the time between them.
function drawGround(p, height) {
  const first = Math.max(0, positionFrom(view.from) - 1), last = Math.min(COUNT - 1, positionFrom(view.to));
  if (view.name === "time" || last - first > 6 * view.width) return;
  let from = MOMENTS.findIndex((moment) => moment.to >= first);
  for (; from >= 0 && from < MOMENTS.length && MOMENTS[from].from <= last; from += 1) {
    const moment = MOMENTS[from], pad = view.name === "order" ? 0.8 : 0.1;
    const x0 = pixel(unitAt(moment.from) - pad), x1 = pixel(unitAt(moment.to) + pad);
    if (from % 2 === 0) {
      p.fillStyle = colors.band;
      p.fillRect(x0, 0, Math.max(1, x1 - x0), height);
    }
    const next = MOMENTS[from + 1];
    if (next && next.life !== moment.life) {
      const end = pixel(unitAt(next.from) - pad);
      p.globalAlpha = 0.55;
      hatch(p, x1, 0, Math.max(0, end - x1), height, colors["rule-strong"]);
      p.globalAlpha = 1;
    }
  }
  if (pixelsPerUnit() < (view.name === "order" ? 9 : 14)) return;
  for (let i = Math.max(1, first); i <= last; i += 1) {
    if (H.step[i] === H.step[i - 1] || H.nanos[i] !== H.nanos[i - 1]) continue;
    const x = Math.round(view.name === "order" ? (pixelAt(i) + pixelAt(i - 1)) / 2 : pixel(H.step[i])) + 0.5;
    p.globalAlpha = 0.7;
    line(p, x, 0, x, height, colors.rule);
    p.globalAlpha = 1;
  }
}

// Lines from top to bottom: crashes, steps of the clock, the end of faults, and where it broke.
function drawUprights(p, height) {
  const first = Math.max(0, positionFrom(view.from) - 1), last = Math.min(COUNT - 1, positionFrom(view.to));
  for (let i = first; i <= last; i += 1) {
    const kind = kindOf(i), x = Math.round(pixelAt(i)) + 0.5;
    if (kind === "clock" && shown.groups.has("clock")) line(p, x, 0, x, height, colors.clock, 1, [2, 3]);
    else if (kind === "faults-stopped" && shown.groups.has("life")) line(p, x, 0, x, height, colors.well, 1, [6, 3]);
    else if (kind === "life-ended" && H.detail[i].how === "crashed" && shown.groups.has("life")) line(p, x, 0, x, height, colors.bad, 1.25, [5, 3]);
  }
  if (DATA.broken === null) return;
  const x = Math.round(pixelAt(DATA.broken)) + 0.5;
  if (!inSight(x - 90, x + 90)) return;
  const glow = p.createLinearGradient(x - 80, 0, x, 0);
  glow.addColorStop(0, `${colors.bad}00`);
  glow.addColorStop(1, colors.bad);
  p.globalAlpha = 0.16;
  p.fillStyle = glow;
  p.fillRect(x - 80, 0, 80, height);
  p.globalAlpha = 1;
  line(p, x, 0, x, height, colors.bad, 2.5);
  hit(x - 4, 0, x + 4, height, { position: DATA.broken });
}

function drawSelection(p, height) {
  const x = Math.round(pixelAt(selected)) + 0.5;
  if (selected !== DATA.broken) line(p, x, 0, x, height, colors.focus, 1);
  for (const one of hits) {
    if (one.position !== selected && !(one.span && (one.span.begin === selected || one.span.end === selected))) continue;
    if (one.y1 - one.y0 > 60) continue;
    p.strokeStyle = colors.focus;
    p.lineWidth = 2;
    p.beginPath();
    p.roundRect(one.x0 - 2, one.y0 - 2, one.x1 - one.x0 + 4, one.y1 - one.y0 + 4, 5);
    p.stroke();
  }
}
