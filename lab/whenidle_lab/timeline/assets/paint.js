
// Paint: a sharp canvas, the colours of the theme, and the few shapes that everything is made of.

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const BOLD = `600 ${FONT}`;

let colors = {};

function readColors() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ground", "sheet", "raised", "band", "rule", "rule-strong", "ink", "ink-soft", "ink-faint", "focus", "turn",
    "maintenance", "wait", "call", "send", "control", "commit", "record", "occurrence", "queue", "clock", "life", "host", "warning",
    "note", "bad", "bad-soft", "bad-ink", "well", "on-mark"];
  colors = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// Fit a canvas to its box, and return a pen that draws in CSS pixels.
function pen(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const wide = Math.max(1, Math.round(width * ratio)), high = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const made = canvas.getContext("2d");
  made.setTransform(ratio, 0, 0, ratio, 0, 0);
  made.clearRect(0, 0, width, height);
  made.font = FONT;
  made.textBaseline = "middle";
  return made;
}

const widths = new Map();

function textWidth(pen, text) {
  const key = pen.font + text;
  if (!widths.has(key)) {
    if (widths.size > 5000) widths.clear();
    widths.set(key, pen.measureText(text).width);
  }
  return widths.get(key);
}

// Write a text on whatever lies there, so that it stays readable.
function label(pen, text, x, y, color) {
  pen.fillStyle = colors.sheet;
  pen.globalAlpha *= 0.85;
  pen.beginPath();
  pen.roundRect(x - 3, y - 7, textWidth(pen, text) + 6, 14, 4);
  pen.fill();
  pen.globalAlpha /= 0.85;
  pen.fillStyle = color;
  pen.fillText(text, x, y);
}

// Write as much of a text as there is room for; nothing if that would be next to nothing.
function write(pen, text, x, y, room, color) {
  if (room < 14) return 0;
  pen.fillStyle = color;
  let words = text;
  if (textWidth(pen, words) > room) {
    const keep = Math.floor((text.length * room) / textWidth(pen, text)) - 1;
    if (keep < 6) return 0;
    words = `${text.slice(0, keep)}…`;
  }
  pen.fillText(words, x, y);
  return textWidth(pen, words);
}

// Write the first of these texts that there is room for; none is cut, since half an instant misleads.
function writeWhole(pen, texts, x, y, room, color) {
  const words = texts.find((one) => textWidth(pen, one) <= room);
  if (words === undefined) return 0;
  pen.fillStyle = color;
  pen.fillText(words, x, y);
  return textWidth(pen, words);
}

function bar(pen, x, y, width, height, color, options = {}) {
  const radius = Math.min(4, width / 2, height / 2);
  pen.beginPath();
  pen.roundRect(x, y, width, height, options.cut ? [radius, 0, 0, radius] : radius);
  if (options.hollow) {
    pen.globalAlpha *= 0.16;
    pen.fillStyle = color;
    pen.fill();
    pen.globalAlpha /= 0.16;
    pen.strokeStyle = color;
    pen.lineWidth = 1;
    pen.stroke();
  } else {
    pen.fillStyle = color;
    pen.fill();
  }
  if (options.bad) {
    pen.strokeStyle = colors.bad;
    pen.lineWidth = 2;
    pen.stroke();
  }
  if (options.cut) torn(pen, x + width, y, height);
}

// The edge of something that its process did not live to end.
function torn(pen, x, y, height) {
  const teeth = Math.max(2, Math.round(height / 5)), step = height / teeth;
  pen.beginPath();
  pen.moveTo(x, y);
  for (let i = 0; i < teeth; i += 1) {
    pen.lineTo(x - 4, y + (i + 0.5) * step);
    pen.lineTo(x, y + (i + 1) * step);
  }
  pen.strokeStyle = colors.bad;
  pen.lineWidth = 1.5;
  pen.stroke();
}

function line(pen, x0, y0, x1, y1, color, width = 1, dash = []) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.strokeStyle = color;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  pen.stroke();
  pen.setLineDash([]);
}

function dot(pen, x, y, radius, color, isHollow = false) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.fillStyle = isHollow ? colors.sheet : color;
  pen.fill();
  if (isHollow) {
    pen.strokeStyle = color;
    pen.lineWidth = 1.75;
    pen.stroke();
  }
}

function cross(pen, x, y, size, color, width = 2) {
  line(pen, x - size, y - size, x + size, y + size, color, width);
  line(pen, x - size, y + size, x + size, y - size, color, width);
}

function diamond(pen, x, y, size, color) {
  polygon(pen, [[x, y - size], [x + size, y], [x, y + size], [x - size, y]], color);
}

function triangle(pen, x, y, size, color) {
  polygon(pen, [[x, y - size], [x + size, y + size * 0.8], [x - size, y + size * 0.8]], color);
}

function polygon(pen, corners, color) {
  pen.beginPath();
  corners.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
  pen.fillStyle = color;
  pen.fill();
}

// Slanted lines, for where no process lives.
function hatch(pen, x, y, width, height, color) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.beginPath();
  for (let at = x - height; at < x + width; at += 9) {
    pen.moveTo(at, y + height);
    pen.lineTo(at + height, y);
  }
  pen.strokeStyle = color;
  pen.lineWidth = 1;
  pen.stroke();
  pen.restore();
}
