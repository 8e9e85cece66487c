
// Axes: where a position lies, in units of the axis. Most of a run happens while no virtual time passes, so
// the first axis gives every happening room and shows where time passes as a gap with its length.

const GAP = 2, GAP_PER_DECADE = 0.45;

function orderUnits() {
  const units = new Float64Array(COUNT);
  for (let i = 1; i < COUNT; i += 1) {
    const passed = timeBefore(i);
    const room = kindOf(i) === "depth" ? 0 : kindOf(i) === "commit-ended" ? 0.55 : 1;
    units[i] = units[i - 1] + room + (passed > 0 ? GAP + GAP_PER_DECADE * Math.log10(1 + passed * 1000) : 0);
  }
  return units;
}

// Seconds between a happening and the one before it: of monotonic time, or of wall time if no process lived.
function timeBefore(position) {
  if (position === 0) return 0;
  const isBirth = H.life[position] !== H.life[position - 1];
  return isBirth ? Math.max(0, (H.wall[position] - H.wall[position - 1]) / 1000) : (H.nanos[position] - H.nanos[position - 1]) / 1e9;
}

function roundUnits() {
  const units = new Float64Array(COUNT);
  for (let from = 0; from < COUNT;) {
    let to = from;
    while (to < COUNT && H.step[to] === H.step[from]) to += 1;
    for (let i = from; i < to; i += 1) units[i] = H.step[from] + (0.9 * (i - from)) / (to - from);
    from = to;
  }
  return units;
}

const AXES = {
  order: { units: orderUnits(), pad: 0.3, least: 6 },
  rounds: { units: roundUnits(), pad: 0, least: 2 },
  time: { units: Float64Array.from(H.nanos, (nanos) => (nanos - (H.nanos[0] || 0)) / 1e9), pad: 0, least: 1e-6 },
};

const view = { name: "order", from: 0, to: 1, width: 100 };
const axis = () => AXES[view.name];

function extent(name = view.name) {
  const units = AXES[name].units, last = COUNT ? units[COUNT - 1] : 0, first = COUNT ? units[0] : 0;
  const size = Math.max(last - first, name === "time" ? 1e-3 : 4);
  return [first - size * 0.012 - (name === "order" ? 0.8 : 0), first + size * 1.03 + (name === "order" ? 0.8 : 0)];
}

function unitAt(position) {
  const { units } = axis(), low = clamp(Math.floor(position), 0, Math.max(0, COUNT - 1)), high = Math.min(low + 1, COUNT - 1);
  return COUNT ? units[low] + (units[high] - units[low]) * (position - low) : 0;
}

const pixel = (unit) => ((unit - view.from) / (view.to - view.from)) * view.width;
const unitOfPixel = (x) => view.from + (x / view.width) * (view.to - view.from);
const pixelAt = (position) => pixel(unitAt(position));
const pixelsPerUnit = () => view.width / (view.to - view.from);

// The first position that lies at a unit or behind it.
function positionFrom(unit) {
  const { units } = axis();
  let low = 0, high = COUNT;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (units[middle] < unit) low = middle + 1; else high = middle;
  }
  return low;
}

function show(from, to) {
  const [least, most] = extent(), size = clamp(to - from, axis().least, (most - least) * 1.0001);
  view.from = clamp(from, least, Math.max(least, most - size));
  view.to = view.from + size;
}

function zoom(factor, x) {
  const unit = unitOfPixel(x), share = x / view.width, size = (view.to - view.from) * factor;
  show(unit - share * size, unit + (1 - share) * size);
}

function pan(pixels) {
  const by = (pixels / view.width) * (view.to - view.from);
  show(view.from + by, view.to + by);
}

// Have a position in sight, a little away from the edges.
function reveal(position) {
  const unit = unitAt(position), size = view.to - view.from;
  if (unit < view.from + size * 0.08) show(unit - size * 0.3, unit + size * 0.7);
  else if (unit > view.to - size * 0.08) show(unit - size * 0.7, unit + size * 0.3);
}

// Switch the axis, and keep in sight what was.
function switchAxis(name) {
  const first = clamp(positionFrom(view.from), 0, Math.max(0, COUNT - 1)), last = clamp(positionFrom(view.to), first, COUNT) - 1;
  const [least, most] = extent(), wasAll = view.to - view.from >= (most - least) * 0.98;
  view.name = name;
  if (wasAll || last <= first) show(...extent());
  else {
    const from = unitAt(first), to = unitAt(last), margin = Math.max((to - from) * 0.03, axis().least);
    show(from - margin, to + margin);
  }
}
