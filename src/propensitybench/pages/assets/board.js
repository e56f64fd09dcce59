"use strict";
// The controls of the board. Without scripts its tables are complete and sorted by propensity.
{
  const body = document.body;
  const [form, naming, part, sort, search, status] =
    ["controls", "naming", "part", "sort", "search", "status"].map((id) => document.getElementById(id));
  const tell = (text) => { status.textContent = text; };
  const elements = [...document.querySelectorAll("table.sortable")];
  const tables = elements.map((table) => new RowTable(table));
  const names = new Set(tables.flatMap(({ heads }) =>
    heads.filter((head) => head.querySelector("button")).map((head) => head.textContent.trim())));

  function sortAll(name) {
    for (const table of tables) {
      const head = table.head(name);
      if (head) table.sortBy(head);
    }
  }

  function filter() {
    const words = searchWords(search);
    const found = tables.map((table) =>
      table.filter((row) => words.every((word) => row.dataset.name.toLowerCase().includes(word))));
    const sum = (numbers) => numbers.filter((_, place) => elements[place].matches(".main")).reduce((a, b) => a + b, 0);
    tell(`${sum(found)} of ${sum(tables.map(({ rows }) => rows.length))} runs`);
  }

  function showPart() {
    body.classList.toggle("only", part.value !== "");
    for (const cell of tables.flatMap(({ heads, rows }) => [...heads, ...rows.flatMap((row) => [...row.cells])])) {
      if (cell.dataset.part) cell.hidden = part.value !== "" && cell.dataset.part !== part.value;
    }
    if (!part.value) return;
    sortAll(part.value);
    tell(`${part.value}, lowest first`);
    document.querySelector("[id^=parts-]").scrollIntoView();
  }

  for (const table of tables) {
    table.onSort = (head) => tell(`sorted by ${head.textContent.trim()}, ${
      head.getAttribute("aria-sort") === "descending" ? "highest" : "lowest"} first`);
  }
  for (const name of names) sort.append(new Option(name, name, name === "Propensity", name === "Propensity"));
  sort.addEventListener("change", () => {
    sortAll(sort.value);
    tell(`sorted by ${sort.value}, lowest first`);
  });
  naming.addEventListener("change", () => {
    body.dataset.naming = naming.value;
    tables.forEach((table) => table.sortAgain());
    tell(`${naming.value} names`);
  });
  part.addEventListener("change", showPart);
  search.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
}
