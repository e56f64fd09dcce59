"use strict";
// Cards: how a number was computed, and where it is in report.json.
const report = JSON.parse(document.getElementById("report").textContent);

function formatNumber(value, unit) {
  if (value === null || value === undefined) return "unknown";
  if (Array.isArray(value)) return value.map((end) => formatNumber(end, unit)).join(" to ");
  const minus = (text) => text.replaceAll("-", "\u2212");
  if (unit === "%") return `${(100 * value).toFixed(2)}%`;
  if (unit === "pp") return minus(`${value >= 0 ? "+" : ""}${(100 * value).toFixed(2)} pp`);
  const text = Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(4);
  return minus(unit === "diff" && value > 0 ? `+${text}` : text);
}

{
  const resolve = (path) => path.split("/").slice(1)
    .reduce((at, key) => at[key.replaceAll("~1", "/").replaceAll("~0", "~")], report);

  function factsOf(button) {
    const { p: encoded, u: unit, n: note } = button.dataset;
    const path = decodeURIComponent(encoded);
    const interval = path.match(/\/(ci95|ci95_workspace)$/);
    const value = resolve(path);
    const whole = interval ? resolve(path.slice(0, interval.index)) : value;
    const facts = whole !== null && typeof whole === "object" && "estimand" in whole
      ? [...estimateFacts(whole, unit), ...(interval && note ? [["shown", note]] : [])]
      : [["what", note || path.split("/").at(-1).replaceAll("_", " ")], ["value", formatNumber(value, unit)], ...basis(path)];
    return [...facts, ["in report.json", make("code", {}, encoded)]];
  }

  function estimateFacts(estimate, unit) {
    const optional = [["95% CI, new workplaces", estimate.ci95_workspace], ["bounds", estimate.bounds]];
    return [
      ["what", estimate.estimand],
      ["value", formatNumber(estimate.value, unit)],
      ["weights", `each ${estimate.weight} weighted equally`],
      ["n", `${estimate.n} tasks, ${estimate.clusters} scenarios (clusters), ${estimate.domains} domains`],
      ["95% CI", formatNumber(estimate.ci95, unit)],
      ["method", estimate.method],
      ...Object.entries(report.standard_errors).map(([name, meaning]) =>
        [`SE, ${name}`, `${formatNumber(estimate.errors[name], unit)}, ${meaning}`]),
      ...optional.filter(([, interval]) => interval).map(([name, interval]) => [name, formatNumber(interval, unit)]),
    ];
  }

  // For a number without a description of its own: the scores or contrast that it belongs to.
  function basis(path) {
    const scores = path.match(/^\/analysis\/runs\/\d+\/scores\/naming\/[^/]+/);
    if (scores) {
      const { n, clusters } = resolve(scores[0]).estimates.propensity.domain;
      return [["weights", "each domain weighted equally"], ["n", `${n} tasks with a score, ${clusters} scenarios`]];
    }
    const parent = resolve(path.slice(0, path.lastIndexOf("/")));
    if (parent && parent.clusters) return [["n", `${parent.clusters} scenarios (clusters)`]];
    const { n, clusters } = (parent && (parent.contrast ?? parent).propensity) || {};
    return n === undefined ? [] : [["n", `${n} tasks, ${clusters} scenarios`]];
  }

  const card = document.getElementById("card");
  let opener = null;
  document.addEventListener("click", ({ target }) => {
    const button = target.closest(".n");
    if (!button) return;
    card.replaceChildren(
      make("h4", {}, button.textContent.trim()),
      make("dl", {}, ...factsOf(button).map(([name, value]) =>
        make("div", {}, make("dt", {}, name), make("dd", {}, value)))));
    card.showPopover();
    opener = button;
    const at = button.getBoundingClientRect(), size = card.getBoundingClientRect();
    const below = at.bottom + 6 + size.height < innerHeight ? at.bottom + 6 : Math.max(8, at.top - 6 - size.height);
    card.style.top = `${below}px`;
    card.style.left = `${Math.max(8, Math.min(at.left, innerWidth - size.width - 8))}px`;
  });
  card.addEventListener("toggle", ({ newState }) => {
    if (newState === "closed" && opener && document.activeElement === document.body) opener.focus();
  });
}
