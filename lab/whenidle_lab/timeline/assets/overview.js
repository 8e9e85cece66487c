
// The overview: the whole run in one line for each agent, and what of it is in sight.

const overview = { from: 0, to: 1, key: "", canvas: document.createElement("canvas") };

function drawOverview() {
  const canvas = byId("overview"), width = view.width, p = pen(canvas, width, 40);
  canvas.style.width = `${width}px`;
  [overview.from, overview.to] = extent();
  const at = (unit) => ((unit - overview.from) / (overview.to - overview.from)) * width;
  const key = [view.name, width, colors.sheet, shown.version, window.devicePixelRatio].join();
  if (key !== overview.key) drawWhole(pen(overview.canvas, width, 40), at, width);
  overview.key = key;
  p.drawImage(overview.canvas, 0, 0, width, 40);
  const x0 = at(view.from), x1 = Math.max(at(view.to), x0 + 3);
  p.fillStyle = colors.ground;
  p.globalAlpha = 0.66;
  p.fillRect(0, 0, x0, 40);
  p.fillRect(x1, 0, width - x1, 40);
  p.globalAlpha = 1;
  p.strokeStyle = colors.focus;
  p.lineWidth = 1.5;
  p.beginPath();
  p.roundRect(x0 + 0.75, 1, Math.max(2, x1 - x0 - 1.5), 38, 5);
  p.stroke();
}

// The whole run, a line for each agent. It stays until filters, axis, width or theme change.
function drawWhole(p, at, width) {
  const { units } = axis(), some = [...shown.agents].sort((a, b) => a - b), apart = 30 / Math.max(1, some.length);
  const tall = clamp(apart, 1.5, 7), lane = new Map(some.map((agent, index) => [agent, 5 + index * apart]));
  for (const y of lane.values()) line(p, 0, y + tall / 2, width, y + tall / 2, colors.rule, 1, [1, 2]);
  for (const span of DATA.spans) {
    if (!lane.has(span.agent) || (span.kind !== "turn" && span.kind !== "maintenance") || !shown.groups.has(span.kind)) continue;
    p.globalAlpha = spanMatches(span) ? 1 : DIM;
    p.fillStyle = colors[span.kind];
    p.fillRect(at(units[span.begin]), lane.get(span.agent), Math.max(1.5, at(units[span.end]) - at(units[span.begin])), tall);
    p.globalAlpha = 1;
  }
  p.fillStyle = colors.focus;
  for (let i = 0; i < COUNT; i += 1) {
    const kind = kindOf(i), x = at(units[i]);
    if (kind === "clock") line(p, x, 0, x, 40, colors.clock, 1, [2, 2]);
    else if (isBad(i)) line(p, x, 0, x, 40, colors.bad, i === DATA.broken ? 2.5 : 1.25);
    if (shown.matches && isListed(i)) p.fillRect(x - 0.5, 0, 1.5, 3);
  }
}
