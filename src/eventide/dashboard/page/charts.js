// The charts: each is told what its lines are, and draws them again when a micro-batch has come.

import { bytes, duration, moment, number } from "./words.js";

const COLORS = 7, HEIGHT = 190;
const NICE_MS = [1, 10, 100].flatMap((power) => [power, 2 * power, 5 * power])
  .concat([1000, 60000].flatMap((unit) => [1, 2, 5, 10, 15, 30].map((n) => n * unit)))
  .concat([1, 2, 3, 6, 12].map((n) => n * 3600000), [1, 2, 7, 14, 28, 91, 182, 364, 3640].map((n) => n * 86400000));

const POWERS = Array.from({ length: 10 }, (_, power) => 10 ** power);
export const NICE = {
  ms: NICE_MS,
  seconds: NICE_MS.map((ms) => ms / 1000),
  counts: POWERS.flatMap((power) => [power, 2 * power, 5 * power]),
};

// The time of the clock for people, in UTC, as exactly as the step between two of them asks for.
function clock(seconds, step) {
  const text = new Date(Math.round(seconds * 1000)).toISOString();
  if (step >= 86400) return text.slice(5, 10);
  return text.slice(11, step < 1 ? 23 : step < 60 ? 19 : 16);
}

const paint = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const color = (i) => () => paint(`--c${i % COLORS}`);
const charts = new Map();

export function chart(id, lines, data, options = {}) {
  const place = document.getElementById(id);
  const shape = JSON.stringify(lines.map((line) => [line.label, line.color, line.dash]));
  let known = charts.get(id);
  if (known && known.shape !== shape) {
    known.plot.destroy();
    known = undefined;
  }
  if (!known) {
    place.replaceChildren();
    known = { shape, plot: new uPlot(settings(place, lines, options), data, place) };
    charts.set(id, known);
  } else {
    known.plot.setData(data);
  }
  // Around a single micro-batch, uPlot would show years.
  if (data[0].length === 1) known.plot.setScale("x", { min: data[0][0] - 30, max: data[0][0] + 30 });
}

export function noChart(id, text) {
  charts.get(id)?.plot.destroy();
  charts.delete(id);
  const said = document.createElement("p");
  said.className = "empty";
  said.textContent = text;
  document.getElementById(id).replaceChildren(said);
}

export function forgetCharts() {
  for (const { plot } of charts.values()) plot.destroy();
  charts.clear();
}

function settings(place, lines, { form = number, isTime = false, bands = [], size = 58, steps = undefined }) {
  const axis = { stroke: () => paint("--soft"), grid: { stroke: () => paint("--line"), width: 1 }, ticks: { stroke: () => paint("--line"), width: 1 } };
  return {
    width: place.clientWidth,
    height: HEIGHT,
    cursor: { y: false },
    scales: { x: { time: true }, y: { range: isTime ? undefined : (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    axes: [
      { ...axis, space: 84, values: (_, splits, __, ___, step) => splits.map((seconds) => clock(seconds, step)) },
      { ...axis, size, values: (_, splits) => splits.map((value) => (value === null ? "" : form(value))), ...(steps ? { incrs: steps } : {}) },
    ],
    series: [
      { label: "UTC", value: (_, at) => (at === null ? "" : moment(Math.round(at * 1000))) },
      ...lines.map((line, i) => ({
        label: line.label,
        stroke: color(line.color ?? i),
        fill: line.fill ? color(line.color ?? i) : undefined,
        dash: line.dash,
        width: line.width ?? 1.5,
        points: { show: line.points ?? ((plot) => plot.data[0].length === 1) },
        spanGaps: true,
        value: (_, __, series, index) => (index === null ? "" : (line.shown ?? ((value) => (value === null || value === undefined ? "" : form(value))))(line.raw ? line.raw()[index] : charts.get(place.id).plot.data[series][index])),
      })),
    ],
    bands: bands.map((band) => ({ ...band, fill: () => paint("--band") })),
  };
}

new ResizeObserver((entries) => {
  for (const { target } of entries) {
    for (const place of target.querySelectorAll(".chart")) {
      charts.get(place.id)?.plot.setSize({ width: place.clientWidth, height: HEIGHT });
    }
  }
}).observe(document.querySelector("main"));

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const { plot } of charts.values()) plot.redraw(false);
});

export const forms = {
  bytes,
  number,
  duration,
  seconds: (value) => duration(value * 1000),
  shortTime: (value) => moment(value).replace(/^\d{4}-/, "").replace(/:00$/, ""),
  moment,
};
