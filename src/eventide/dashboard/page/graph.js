// The graph of operators: columns from left to right as elements flow, an edge for each way between them.

import { duration, number, second } from "./words.js";

const WIDTH = 216, HEIGHT = 92, GAP_X = 48, GAP_Y = 18, MARGIN = 4, CHARACTERS = 29;

const svg = document.getElementById("graph");
let chosen = null;

function element(name, attributes, ...children) {
  const made = document.createElementNS(svg.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function columnsOf(description) {
  const column = new Map();
  const last = 1 + Math.max(0, ...description.operators.map((operator) => operator.level));
  for (const source of description.sources) column.set(source.name, 0);
  for (const operator of description.operators) column.set(operator.name, operator.level);
  for (const sink of description.sinks) column.set(sink.name, last);
  return column;
}

// An edge that passes columns by has a place of its own in each, so that it does not run behind a node.
function waysOf(description, column) {
  return description.edges.map((edge, i) => {
    const between = Math.max(0, column.get(edge.to) - column.get(edge.from) - 1);
    const bends = Array.from({ length: between }, (_, k) => `${i}/${k}`);
    bends.forEach((bend, k) => column.set(bend, column.get(edge.from) + 1 + k));
    return { edge, stops: [edge.from, ...bends, edge.to], bends };
  });
}

function placed(description) {
  const column = columnsOf(description);
  const ways = waysOf(description, column);
  const bends = new Set(ways.flatMap((way) => way.bends));
  const heightOf = (name) => (bends.has(name) ? GAP_Y : HEIGHT);
  const columns = [];
  for (const [name, at] of column) (columns[at] ??= []).push(name);
  const middle = new Map();
  const total = (names) => names.reduce((sum, name) => sum + heightOf(name) + GAP_Y, -GAP_Y);
  const height = Math.max(...columns.filter(Boolean).map(total));
  const places = new Map();
  columns.forEach((names, at) => {
    // Each stands near the middle of what it comes from, so that few edges cross.
    const wish = new Map(names.map((name, i) => {
      const from = ways.flatMap(({ stops }) => stops.filter((_, k) => stops[k + 1] === name)).filter((one) => middle.has(one));
      return [name, from.length ? from.reduce((sum, one) => sum + middle.get(one), 0) / from.length : i];
    }));
    let y = MARGIN + (height - total(names)) / 2;
    for (const name of names.sort((a, b) => wish.get(a) - wish.get(b))) {
      places.set(name, { x: MARGIN + at * (WIDTH + GAP_X), y, middle: y + heightOf(name) / 2 });
      middle.set(name, y + heightOf(name) / 2);
      y += heightOf(name) + GAP_Y;
    }
  });
  return { places, ways, bends, width: columns.length * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN, height: height + 2 * MARGIN };
}

function curve(stops, places, bends) {
  const points = stops.flatMap((name, i) => {
    const { x, middle } = places.get(name);
    if (bends.has(name)) return [[x, middle], [x + WIDTH, middle]];
    return [[i ? x : x + WIDTH, middle]];
  });
  return points.slice(1).reduce((path, [x, y], i) => {
    const [from, height] = points[i];
    const bend = (x - from) / 2;
    return `${path}C${from + bend} ${height} ${x - bend} ${y} ${x} ${y}`;
  }, `M${points[0].join(" ")}`);
}

function shortened(text) {
  return text.length > CHARACTERS ? `${text.slice(0, CHARACTERS - 1)}…` : text;
}

function linesOf(kind, node, total, last) {
  if (kind === "sink") return [[node.kind, "soft"]];
  const lines = [];
  const late = total ? total.dropped + total.aside : 0;
  if (kind === "source") {
    lines.push([`${node.kind}, ${node.splits.length || "any number of"} split(s)`, "soft"]);
    lines.push([total ? `${number(total.out)} out` : "", ""]);
    if (total?.dead) lines.push([`${number(total.dead)} dead letter(s)`, "late"]);
    return lines;
  }
  lines.push([total ? `${number(total.in)} in, ${number(total.out)} out` : "", ""]);
  const watermark = last?.operators[node.name]?.watermark;
  lines.push([node.kind === "alignment" ? "" : `at ${second(watermark)}`, ""]);
  const behind = typeof watermark === "number" ? `${duration(last.began_ms + last.took_ms - watermark)} behind` : "";
  const dead = total?.dead ? `${number(total.dead)} dead` : "";
  lines.push([[behind, late ? `${number(late)} late` : "", dead].filter(Boolean).join(", "), late || dead ? "late" : "soft"]);
  return lines;
}

export function drawGraph(description, totals, last, onChoice) {
  const { places, ways, bends, width, height } = placed(description);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const focused = document.activeElement?.dataset?.name;
  const drawn = ways.map(({ edge, stops }) => {
    const path = element("path", { d: curve(stops, places, bends) });
    path.append(element("title", {}, [...edge.through, edge.travels].join(" → ")));
    return path;
  });
  const kinds = [["source", description.sources], ["operator", description.operators], ["sink", description.sinks]];
  for (const [kind, nodes] of kinds) {
    for (const node of nodes) {
      const { x, y } = places.get(node.name);
      const group = element("g", {
        class: `operator ${kind}${node.name === chosen ? " chosen" : ""}`,
        transform: `translate(${x} ${y})`, tabindex: 0, role: "button", "data-name": node.name,
      });
      group.append(element("title", {}, node.name), element("rect", { width: WIDTH, height: HEIGHT, rx: 8 }));
      group.append(element("text", { x: 10, y: 20, "font-weight": 600 }, shortened(node.name)));
      linesOf(kind, node, totals.get(node.name), last).forEach(([text, style], i) => {
        group.append(element("text", { x: 10, y: 40 + 19 * i, class: style }, shortened(text)));
      });
      const choose = () => { chosen = node.name; onChoice(kind, node); };
      group.addEventListener("click", choose);
      group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } });
      drawn.push(group);
    }
  }
  svg.replaceChildren(...drawn);
  if (focused) [...svg.querySelectorAll(".operator")].find((group) => group.dataset.name === focused)?.focus();
}

export function forgetChoice() {
  chosen = null;
}
