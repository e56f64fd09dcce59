"use strict";
// What the page's other scripts use: classic scripts share their top-level declarations. All numbers and
// tables are already in the HTML; the scripts add charts, sorting, filters and cards.
const report = JSON.parse(document.getElementById("report").textContent);
const sides = report.analysis.runs.flatMap((run, place) =>
  Object.entries(run.scores.naming).map(([naming, scores]) => (
    { place, label: report.runs[place].label, naming, scores }
  )));
// Tables with more rows than this get filters; charts with more groups get a second axis.
const MANY = 8;

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function formatNumber(value, unit) {
  if (value === null || value === undefined) return "unknown";
  if (Array.isArray(value)) return value.map((end) => formatNumber(end, unit)).join(" to ");
  const minus = (text) => text.replaceAll("-", "\u2212");
  if (unit === "%") return `${(100 * value).toFixed(2)}%`;
  if (unit === "pp") return minus(`${value >= 0 ? "+" : ""}${(100 * value).toFixed(2)} pp`);
  const text = Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(4);
  return minus(unit === "diff" && value > 0 ? `+${text}` : text);
}

function chooser(name, values, onChange) {
  const select = make("select", {}, make("option", { value: "" }, "all"),
    ...values.map((value) => make("option", { value }, String(value))));
  select.addEventListener("change", onChange);
  return [select, make("label", {}, name, select)];
}

function searcher(name, onInput) {
  const input = make("input", { type: "search" });
  input.addEventListener("input", onInput);
  return [input, make("label", {}, name, input)];
}

// The words of a search box, all of which must occur.
const searchWords = (input) => input.value.toLowerCase().split(/\s+/).filter(Boolean);
