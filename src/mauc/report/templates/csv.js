// Save every table as a CSV file.
// A cell gives its number by data-v, or several numbers by data-cells; a heading names them by data-columns.
function cellsOf(cell) {
  if (cell.dataset.cells !== undefined) return JSON.parse(cell.dataset.cells);
  return [cell.dataset.v !== undefined && cell.dataset.v !== "" ? cell.dataset.v : cell.textContent.trim()];
}

// A quote keeps a spreadsheet from running text as a formula.
const FORMULA = /^'*(\s*[=+\-@＝＋－＠]|[\t\r\n])/;
function quoted(value) {
  const plain = value === null ? "" : String(value);
  const isNumber = plain !== "" && !Number.isNaN(Number(plain));
  return isNumber ? plain : `"${(FORMULA.test(plain) ? "'" : "") + plain.replaceAll('"', '""')}"`;
}

function csvOf(table) {
  const heads = [...table.tHead.rows[0].cells];
  const kept = heads.map((head) => head.dataset.columns !== "");
  const names = heads.flatMap((head, k) => (kept[k] ? head.dataset.columns?.split("|") || [head.textContent.trim()] : []));
  const lines = [...table.tBodies[0].rows].map((row) => [...row.cells].flatMap((cell, k) => (kept[k] ? cellsOf(cell) : [])));
  return [names, ...lines].map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}

function download(name, content) {
  const link = document.createElement("a");
  // The byte order mark makes spreadsheets read UTF-8.
  link.href = URL.createObjectURL(new Blob(["\ufeff", content], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

for (const button of document.querySelectorAll("button.csv")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const of = button.dataset.of;
    if (of === "pairs") download("auc-of-pairs.csv", csvOfPairs());
    else if (of === "confusion") download("confusion.csv", csvOfConfusion());
    else download(`${of}.csv`, csvOf(document.getElementById(of)));
  });
}

function everyPair(diagonal, line) {
  const lines = [];
  DATA.classes.forEach((a, i) => DATA.classes.forEach((b, j) => {
    if (diagonal || i !== j) lines.push(line(a, b, i, j).map(quoted).join(","));
  }));
  return lines.join("\r\n") + "\r\n";
}
const csvOfPairs = () => '"class i","class j","AUC"\r\n' + everyPair(false, (a, b, i, j) => [a, b, aucOf(STATE.model, i, j)]);
const csvOfConfusion = () => '"true class","predicted class","rows"\r\n' + everyPair(true, (a, b, i, j) => [a, b, confusionOf(i, j)]);
