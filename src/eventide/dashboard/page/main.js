// Asks for what is new of one job each second, and shows it.

import { chart, forgetCharts, forms, NICE, noChart } from "./charts.js";
import { drawGraph, forgetChoice } from "./graph.js";
import { bytes, duration, moment, number, second } from "./words.js";

const EVERY_MS = 1000, KEPT = 1000, RECENT = 20;
const HELD = { numOpenWindows: "open windows", numOpenSessions: "open sessions", numTimers: "timers", numKeys: "keys", numElements: "kept elements" };
const SPENT = ["running", "sinks", "planning", "committing", "other"];

const at = (id) => document.getElementById(id);
let job = null, batches = [], slowest = [], totals = new Map(), choice = null, looking = new AbortController();

async function ask(path, options = {}) {
  const answer = await fetch(path, options);
  if (answer.status === 503) throw new Error((await answer.json()).error);
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${answer.statusText}`);
  return answer.json();
}

function made(tag, text, attributes = {}) {
  const one = document.createElement(tag);
  one.textContent = text;
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  return one;
}

async function follow() {
  try {
    await look();
    if (job) at("message").hidden = !troubleOf(job);
  } catch (error) {
    if (error.name === "AbortError") return; // another job was chosen meanwhile
    const nobody = error instanceof TypeError ? "Nobody answers here any more; w" : "W"; // it is one if nobody is there
    at("message").textContent = `${nobody}hat is shown is the last that was known. (${error.message})`;
    at("message").hidden = false;
  } finally {
    setTimeout(follow, EVERY_MS);
  }
}

// One look at a time: a new one ends the one before, whose answers may be of a job that is no longer wanted.
async function look() {
  looking.abort();
  looking = new AbortController();
  const { signal } = looking;
  const jobs = await ask("/api/jobs", { signal });
  showJobs(jobs);
  if (!jobs.length) {
    at("status").textContent = "no job yet";
    return;
  }
  const wanted = Number(location.hash.slice(1)) || jobs.at(-1).number;
  if (job?.number !== wanted) {
    job = await ask(`/api/jobs/${wanted}`, { signal });
    batches = [];
    slowest = [];
    totals = new Map();
    at("details").hidden = true;
    choice = null;
    forgetChoice();
    forgetCharts();
  }
  const news = await ask(`/api/jobs/${job.number}/batches?after=${lastBatch()}`, { signal });
  for (const what of ["status", "failure", "restarts", "last_restart"]) job[what] = news[what];
  showHeading();
  showVerdict(news.verdict);
  if (news.batches.length || !batches.length) {
    take(news);
    show();
  }
}

function lastBatch() {
  return batches.length ? batches.at(-1).batch : -1;
}

function take(news) {
  for (const batch of news.batches) {
    for (const [name, of] of Object.entries(batch.operators)) {
      const sum = totals.get(name) ?? { in: 0, out: 0, dropped: 0, aside: 0, dead: 0 };
      for (const what of Object.keys(sum)) sum[what] += of[what];
      totals.set(name, sum);
    }
  }
  batches = batches.concat(news.batches).slice(-KEPT);
  slowest = news.slowest ?? slowest;
  if (slowest.length) batches = batches.slice(-slowest[0].watermarks.length);
}

function showJobs(jobs) {
  const select = at("jobs");
  const texts = jobs.map((one) => `${one.number}: ${one.name} (${one.status})`);
  if (texts.join("\n") !== [...select.options].map((option) => option.text).join("\n")) {
    select.replaceChildren(...jobs.map((one, i) => made("option", texts[i], { value: one.number })));
  }
  select.hidden = jobs.length < 2;
  if (job) select.value = job.number;
}

function showHeading() {
  document.title = `${job.name} · eventide`;
  at("title").textContent = job.name;
  const times = job.restarts === 1 ? "once" : `${job.restarts} times`;
  at("status").textContent = job.restarts ? `${job.status}, started again ${times}` : job.status;
  at("status").className = `chip ${job.status}`;
  const message = troubleOf(job);
  if (message) at("message").textContent = message;
}

function showVerdict(verdict) {
  const links = verdict.symptoms.map((one) => made("a", one.text, { href: `/runbook#${one.section}`, target: "_blank" }));
  const parts = links.length ? links.flatMap((link, i) => (i ? ["; ", link] : [link])) : [verdict.text];
  if (at("verdict").textContent !== verdict.text) at("verdict").replaceChildren(...parts);
  at("verdict").className = verdict.is_well ? "well" : "ill";
  at("verdict").hidden = false;
}

function troubleOf(job) {
  return job.failure ?? (job.status === "restarting" ? job.last_restart : null);
}

function show() {
  const last = batches.at(-1);
  showTiles(last);
  drawGraph(job.description, totals, last, choose);
  if (!last) return;
  const ends = batches.map((batch) => (batch.began_ms + batch.took_ms) / 1000);
  showSplits(last, ends);
  showCounts(ends);
  showTimes(ends);
  showHeld(ends);
  if (choice) showDetails();
}

function operatorsOf(batch) {
  return job.description.operators.filter((one) => one.kind !== "alignment" && batch.operators[one.name]).map((one) => one.name);
}

function showTiles(last) {
  const tiles = [];
  if (last) {
    const marks = operatorsOf(last).map((name) => last.operators[name].watermark);
    const times = marks.filter((mark) => typeof mark === "number");
    const lowest = marks.includes(null) ? null : times.length ? Math.min(...times) : marks.length ? "end" : undefined;
    const recent = batches.slice(-RECENT);
    const span = last.began_ms + last.took_ms - recent[0].began_ms;
    const late = [...totals.values()].reduce((sum, one) => sum + one.dropped + one.aside, 0);
    if (lowest !== undefined) tiles.push(["watermark", second(lowest)]);
    if (typeof lowest === "number") tiles.push(["behind the clock", duration(last.began_ms + last.took_ms - lowest)]);
    const slow = slowest[0];
    if (last.splits.count > 1 && slow) tiles.push(["slowest split", `${slow.split} (${slow.source})`]);
    tiles.push(["rows a second", number(span > 0 ? Math.round(recent.reduce((sum, one) => sum + one.rows_in, 0) * 1000 / span) : 0)]);
    if (Object.keys(last.pending).length) tiles.push(["waiting", number(Object.values(last.pending).reduce((a, b) => a + b))]);
    if (last.behind) tiles.push(["most wait in", `${last.behind.split} (${last.behind.source}): ${number(last.behind.records)}`]);
    tiles.push(["late", number(late)]);
    const dead = [...totals.values()].reduce((sum, one) => sum + one.dead, 0);
    if (dead) tiles.push(["dead letters", number(dead)]);
    tiles.push(["micro-batch", `${last.batch}, ${duration(last.took_ms)}`]);
    if (last.state_bytes.length) tiles.push(["state", bytes(last.state_bytes.reduce((a, b) => a + b))]);
  } else {
    tiles.push(["micro-batch", "the first has not ended yet"]);
  }
  at("tiles").replaceChildren(...tiles.map(([what, text]) => {
    const tile = made("div", "", { class: "tile" });
    tile.append(made("span", what), made("b", text));
    return tile;
  }));
}

function showSplits(last, ends) {
  const spread = last.splits;
  const silent = spread.silent ? `, ${spread.silent} of them have not spoken` : "";
  at("splits-note").textContent = spread.count ? `${spread.count} split(s)${silent}` : "";
  if (!spread.count && !batches.some((batch) => batch.splits.at)) {
    noChart("splits", "No operator waits for a watermark of a split.");
    return;
  }
  const part = (i) => batches.map((batch) => batch.splits.at?.[i] ?? null);
  const form = { form: forms.shortTime, isTime: true, size: 110, steps: NICE.ms };
  // In the order of their names, so that each keeps its colour when another one falls behind it.
  const own = slowest.slice(0, spread.count > slowest.length ? 3 : slowest.length)
    .sort((a, b) => `${a.source}/${a.split}`.localeCompare(`${b.source}/${b.split}`, "en", { numeric: true }));
  const lines = own.map((one, i) => ({ label: `${one.split} (${one.source})`, color: i, shown: moment, width: 2 }));
  const data = own.map((one) => one.watermarks.slice(-batches.length).map((mark) => (typeof mark === "number" ? mark : null)));
  if (spread.count > own.length) {
    const first = own.length + 1;
    lines.push({ label: "furthest ahead", color: 5, width: 0.8, shown: moment }, { label: "slowest tenth", color: 5, width: 0.8, shown: moment });
    lines.push({ label: "middle", color: 5, dash: [5, 4], shown: moment });
    chart("splits", lines, [ends, ...data, part(3), part(1), part(2)], { ...form, bands: [{ series: [first, first + 1] }] });
  } else {
    chart("splits", lines, [ends, ...data], form);
  }
}

function showCounts(ends) {
  const rates = batches.map((batch, i) => {
    const since = i ? batches[i - 1].began_ms + batches[i - 1].took_ms : batch.began_ms;
    const span = Math.max(1, batch.began_ms + batch.took_ms - Math.min(since, batch.began_ms));
    return batch.rows_in * 1000 / span;
  });
  chart("rows", [{ label: "rows in", fill: false }], [ends, rates]);
  const sums = (what) => batches.map((batch) => Object.values(batch.operators).reduce((sum, one) => sum + one[what], 0));
  const late = [{ label: "dropped", color: 3, points: true }, { label: "to a side output", color: 1, points: true }];
  const dead = [...totals.values()].some((one) => one.dead);
  const lines = dead ? [...late, { label: "dead letters", color: 2, points: true }] : late;
  chart("late", lines, [ends, sums("dropped"), sums("aside"), ...(dead ? [sums("dead")] : [])], { steps: NICE.counts });
  const names = operatorsOf(batches.at(-1));
  const behind = (name) => batches.map((batch) => {
    const mark = batch.operators[name]?.watermark;
    return typeof mark === "number" ? batch.began_ms + batch.took_ms - mark : null;
  });
  if (names.some((name) => behind(name).some((ms) => ms !== null))) {
    chart("lag", names.map((label) => ({ label })), [ends, ...names.map(behind)], { form: forms.duration, size: 80, steps: NICE.ms });
  } else {
    noChart("lag", "No operator has had a watermark yet.");
  }
}

function showTimes(ends) {
  // Each line stands on those below it, so the tallest is drawn first.
  const known = batches.some((batch) => Object.keys(batch.spent_ms).length);
  const spent = (what) => batches.map((batch) => (known ? batch.spent_ms[what] ?? 0 : batch.took_ms) / 1000);
  const names = known ? SPENT : ["all"];
  const own = names.map(spent);
  const stacked = own.map((_, i) => own[0].map((_, j) => own.slice(0, i + 1).reduce((sum, one) => sum + one[j], 0)));
  const order = names.map((_, i) => i).reverse();
  const lines = order.map((i) => ({ label: names[i], color: i, fill: true, width: 0.5, raw: () => own[i], shown: (value) => duration(value * 1000) }));
  chart("times", lines, [ends, ...order.map((i) => stacked[i])], { form: forms.seconds, size: 70, steps: NICE.seconds });
}

function showHeld(ends) {
  const sum = (name) => batches.map((batch) => Object.values(batch.operators).reduce((all, one) => all + (one.held[name] ?? 0), 0));
  const names = Object.keys(HELD).filter((name) => batches.some((batch) => Object.values(batch.operators).some((one) => name in one.held)));
  if (names.length) chart("held", names.map((name) => ({ label: HELD[name] })), [ends, ...names.map(sum)], { steps: NICE.counts });
  else noChart("held", "No operator has said what it holds.");
  const stages = Math.max(...batches.map((batch) => batch.state_bytes.length));
  if (stages) {
    const lines = Array.from({ length: stages }, (_, i) => ({ label: `stage ${i + 1}` }));
    const sizes = lines.map((_, i) => batches.map((batch) => batch.state_bytes[i] ?? 0));
    chart("state", lines, [ends, ...sizes], { form: bytes, size: 72 });
  } else {
    noChart("state", "This job has no state store.");
  }
}

function choose(kind, node) {
  choice = { kind, node };
  if (kind === "operator" && node.kind === "operator") {
    choice.why = made("div", "", { class: "why" });
    askWhy(choice);
  }
  at("details").replaceChildren();
  at("details").hidden = false;
  drawGraph(job.description, totals, batches.at(-1), choose);
  showDetails();
}

async function showDetails() {
  const { kind, node } = choice;
  const facts = [["kind", kind === "operator" ? `operator of stage ${node.level}, ${node.parallelism} subtask(s)` : `${kind}, ${node.kind}`]];
  if (node.text && node.text !== node.kind) facts.push(["is", node.text]);
  if (node.splits?.length) facts.push(["splits", node.splits.slice(0, 20).join(", ") + (node.splits.length > 20 ? `, … (${node.splits.length})` : "")]);
  if (node.alignment) facts.push(["aligned", `group ${node.alignment.group}, at most ${duration(node.alignment.drift_ms)} ahead`]);
  if (node.speed) facts.push(["runs on", node.speed]);
  facts.push(...(node.says ?? []));
  for (const edge of job.description.edges.filter((one) => one.to === node.name)) {
    facts.push(["from", [edge.from, ...edge.through].join(" → ")]);
    for (const one of edge.in_python ?? []) facts.push(["function", one]);
    if (edge.strategy) facts.push(["watermarks", edge.strategy.text]);
  }
  const now = batches.at(-1)?.operators[node.name];
  if (kind === "operator" && now && node.kind === "operator") {
    facts.push(["watermark", moment(now.watermark)]);
    for (const [name, count] of Object.entries(now.held)) facts.push([HELD[name] ?? name, String(count)]);
  }
  if (node.id) facts.push(["stored as", node.id]);
  let found = { metrics: {} };
  try {
    found = await ask(`/api/jobs/${job.number}/operator?name=${encodeURIComponent(node.name)}`);
  } catch { /* the rest is worth showing all the same */ }
  if (choice?.node !== node) return;
  for (const [name, value] of Object.entries(found.metrics)) facts.push([name, typeof value === "object" ? JSON.stringify(value) : String(value)]);
  const list = document.createElement("dl");
  for (const [what, text] of facts) list.append(made("dt", what), made("dd", text));
  at("details").replaceChildren(made("h3", node.name), list, ...(choice.why ? [choice.why] : []));
}

// Why a watermark stands where it does takes a look into the state, so that is asked for at a click alone.
async function askWhy({ node, why }) {
  why.replaceChildren(made("pre", "Looking into the state …"));
  let text;
  try {
    text = (await ask(`/api/jobs/${job.number}/why?name=${encodeURIComponent(node.name)}`, { method: "POST", headers: { "X-Eventide": "page" } })).why;
  } catch (error) {
    text = error.message;
  }
  const again = made("button", "Ask again", { type: "button" });
  again.addEventListener("click", () => askWhy({ node, why }));
  why.replaceChildren(made("h4", "Why its watermark stands there"), ...paragraphs(text), again);
}

// Sentences are wrapped; tables and bars, which are indented further, keep their lines.
function paragraphs(text) {
  const parts = text.match(/(?:^ {4}.*\n?)+|(?:^(?! {4}).*\n?)+/gm) ?? [];
  return parts.map((part) => made("pre", part, { class: part.startsWith("    ") ? "table" : "text" }));
}

at("jobs").addEventListener("change", (event) => { location.hash = event.target.value; });
addEventListener("hashchange", () => look().catch(() => {}));
follow();
