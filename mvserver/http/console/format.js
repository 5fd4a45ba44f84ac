// Numbers, times and bytes as people read them.

const COUNT = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const RATE = new Intl.NumberFormat("en", {maximumFractionDigits: 1});

export const count = value => value === null || value === undefined ? null : COUNT.format(value);
export const rate = value => value === null || value === undefined ? null : `${RATE.format(value)}/s`;

export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return null;
  if (milliseconds < 1000) return `${COUNT.format(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 120) return `${RATE.format(seconds)} s`;
  if (seconds < 7200) return `${COUNT.format(seconds / 60)} min`;
  return `${RATE.format(seconds / 3600)} h`;
}

export const seconds = value => value === null || value === undefined ? null : duration(value * 1000);

export function moment(text) {
  return text ? text.replace("T", " ").replace(/\.(\d{3})\d*/, ".$1").replace("+00:00", " UTC") : null;
}

// From one instant to another, whose date is left out where it is the same.
export function span(from, to) {
  if (!from) return null;
  const [start, end] = [moment(from), moment(to)];
  const day = start.slice(0, 11);
  return `${start} – ${end?.startsWith(day) ? end.slice(day.length) : end}`;
}

// A bytea, as text where it is UTF-8.
export function bytes(text, most = 1000) {
  if (text === null || !text.startsWith("\\x")) return text;
  const raw = Uint8Array.from(text.slice(2).match(/../g) ?? [], pair => parseInt(pair, 16));
  let read = text;
  try {
    read = new TextDecoder("utf-8", {fatal: true}).decode(raw);
  } catch {
    // it stays hexadecimal
  }
  return read.length > most ? `${read.slice(0, most)}…` : read;
}
