// Numbers and times for people. A watermark is milliseconds, "end", or null where none has come yet.

const UNITS = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];

export function number(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toPrecision(3)} G`;
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)} k`;
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(3)));
}

export function duration(ms) {
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10000) return `${(ms / 1000).toFixed(1).replace(".0", "")} s`;
  const parts = [];
  for (const [name, length] of UNITS) {
    const count = Math.floor(ms / length);
    ms -= count * length;
    if (count || parts.length) parts.push(count ? `${count} ${name}` : "");
  }
  return parts.slice(0, 2).filter(Boolean).join(" ");
}

export function moment(watermark) {
  if (watermark === null || watermark === undefined) return "none yet";
  if (watermark === "end") return "the end";
  const date = new Date(watermark);
  if (Number.isNaN(date.getTime())) return `${watermark} ms`;
  return date.toISOString().replace("T", " ").replace(/\.000Z$|Z$/, "");
}

// A watermark to the second, where there is little room.
export function second(watermark) {
  return moment(watermark).replace(/\.\d{3}$/, "");
}

export function bytes(size) {
  for (const [unit, length] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (size >= length) return `${Number((size / length).toPrecision(3))} ${unit}`;
  }
  return `${size} B`;
}
