// Tables that sort by any column, and the tabs over two of them.
function valueOf(cell, kind) {
  return kind === "text" ? cell.textContent.trim() : Number(cell.dataset.v);
}

function sortBy(table, column, kind) {
  const head = table.tHead.rows[0].cells[column];
  // The first click sorts words up and numbers down; the second click reverses.
  const before = head.getAttribute("aria-sort");
  const rising = before ? before === "descending" : kind === "text";
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const sign = rising ? 1 : -1;
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const keyed = [...table.tBodies[0].rows].map((row) => [valueOf(row.cells[column], kind), row]);
  keyed.sort(([a], [b]) => sign * (kind === "text" ? compare(a, b) : a - b));
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const kind = head.dataset.kind || "number";
    if (kind === "none") return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(table, column, kind));
    head.append(button);
  });
}

const tabs = [...document.querySelectorAll('[role="tab"]')];
function choose(tab) {
  for (const other of tabs) {
    const on = other === tab;
    other.setAttribute("aria-selected", on);
    other.tabIndex = on ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = !on;
  }
}
tabs.forEach((tab, k) => {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(k + step + tabs.length) % tabs.length];
    choose(next);
    next.focus();
  });
});
choose(tabs[0]);
