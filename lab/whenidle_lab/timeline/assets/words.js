
// Words: lengths of time, instants, and elements whose texts can never become markup.

const DAY = 86400, HOUR = 3600, MINUTE = 60;

function spanText(seconds) {
  const sign = seconds < 0 ? "−" : "", size = Math.abs(seconds), whole = Math.round(size);
  const two = (large, unit, small, smallUnit) => `${large} ${unit}${small ? ` ${small} ${smallUnit}` : ""}`;
  if (size === 0) return "0 s";
  if (size < 1) return `${sign}${Number((size * 1000).toPrecision(3))} ms`;
  if (whole < MINUTE) return `${sign}${Number(size.toPrecision(3))} s`;
  if (whole < HOUR) return sign + two(Math.floor(whole / MINUTE), "min", whole % MINUTE, "s");
  if (whole < DAY) return sign + two(Math.floor(whole / HOUR), "h", Math.floor((whole % HOUR) / MINUTE), "min");
  return sign + two(Math.floor(whole / DAY), "d", Math.floor((whole % DAY) / HOUR), "h");
}

// Like `1:40:07.715`, where two largest units would say the same of different times.
function exactText(seconds) {
  const two = (value) => String(value).padStart(2, "0"), millis = Math.round(seconds * 1000), whole = Math.floor(millis / 1000);
  const rest = millis % 1000 ? `.${String(millis % 1000).padStart(3, "0")}` : "";
  if (whole < MINUTE) return `${Number(seconds.toFixed(6))} s`;
  const days = whole >= DAY ? `${Math.floor(whole / DAY)} d ` : "";
  return `${days}${Math.floor((whole % DAY) / HOUR)}:${two(Math.floor((whole % HOUR) / MINUTE))}:${two(whole % MINUTE)}${rest}`;
}

function signedSpan(seconds) {
  return (seconds > 0 ? "+" : "") + spanText(seconds);
}

// The wall clock against monotonic time.
function aheadText(millis) {
  return millis < 0 ? `${spanText(-millis / 1000)} behind` : `${spanText(millis / 1000)} ahead`;
}

function wallText(millis) {
  const date = new Date(millis);
  if (Number.isNaN(date.getTime())) return `${millis} ms since 1970`;
  return date.toISOString().replace("T", " ").replace(/(\.000)?Z$/, "");
}

// The end of the instant that differs from the one before: a date only where it changed.
function wallShort(millis, before) {
  const text = wallText(millis);
  const day = text.slice(0, 10);
  return before !== null && wallText(before).slice(0, 10) === day ? text.slice(11) : `${text.slice(0, 10)} ${text.slice(11)}`;
}

function plain(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (one) =>
    one === "\n" || one === "\t" ? one : `\\u{${one.codePointAt(0).toString(16)}}`);
}

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") made.className = value;
    else if (key === "color") made.style.background = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
}

const byId = (id) => document.getElementById(id);
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
