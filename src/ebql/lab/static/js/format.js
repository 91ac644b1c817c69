// Numbers and durations as people read them.

const MINUS = "−";
const tidy = (text) => text.replace(/^-/, MINUS);

/** A number with about `digits` significant digits. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "—";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e7) return tidy(value.toExponential(digits - 1));
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return tidy(value.toLocaleString("en", { minimumFractionDigits: Math.min(decimals, 6), maximumFractionDigits: Math.min(decimals, 6) }));
}

/** A number with its sign and a fixed number of decimals. */
export function signed(value, decimals = 3) {
  if (value === null || value === undefined) return "—";
  const text = Math.abs(value).toFixed(decimals);
  if (Number(text) === 0) return text;
  return (value < 0 ? MINUS : "+") + text;
}

export const fixed = (value, decimals = 3) => (value === null || value === undefined ? "—" : tidy(value.toFixed(decimals)));
export const whole = (value) => (value === null || value === undefined ? "—" : Math.round(value).toLocaleString("en"));
export const percent = (value) => `${(100 * value).toFixed(value > 0.0995 && value < 0.9995 ? 0 : 1)}%`;

export function short(value) {
  const size = Math.abs(value);
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (size >= unit) return tidy(`${Number((value / unit).toPrecision(4))}${letter}`);
  }
  return tidy(String(Number(value.toPrecision(4))));
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 100) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 100) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days ${hours % 24} h`;
}
