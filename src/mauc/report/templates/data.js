"use strict";
// Decode the numbers of the page once.
const DATA = JSON.parse(document.getElementById("data").textContent);

const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

for (const model of DATA.models) {
  const bytes = bytesOf(model.auc);
  const n = DATA.classes.length;
  model.matrix = new Float64Array(n * n);
  for (let k = 0; k < n * n; k++) {
    const value = bytes[2 * k] + 256 * bytes[2 * k + 1];
    model.matrix[k] = value === 65535 ? NaN : value / 10000;
  }
  model.bytes = model.histograms === null ? null : bytesOf(model.histograms);
}

const aucOf = (m, i, j) => DATA.models[m].matrix[i * DATA.classes.length + j];

// Counts of column i over the rows of class j; null where the page does not hold them.
function histogramOf(m, i, j) {
  const model = DATA.models[m];
  if (model.bytes === null) return model.some[`${i},${j}`] ? bytesOf(model.some[`${i},${j}`]) : null;
  const start = (i * DATA.classes.length + j) * DATA.bins;
  return model.bytes.subarray(start, start + DATA.bins);
}

// Points of the ROC of i against j, and whether they are exact or drawn from the histograms.
function curveOf(m, i, j) {
  const exact = DATA.models[m].roc[`${i},${j}`];
  if (exact) return { points: exact[0].map((x, k) => [x / 1000, exact[1][k] / 1000]), exact: true };
  const positives = histogramOf(m, i, i);
  const negatives = histogramOf(m, i, j);
  if (!positives || !negatives) return null;
  const sum = (counts) => counts.reduce((a, b) => a + b, 0);
  const [p, n] = [sum(positives), sum(negatives)];
  const points = [[0, 0]];
  let [x, y] = [0, 0];
  for (let b = DATA.bins - 1; b >= 0; b--) {
    x += negatives[b] / n;
    y += positives[b] / p;
    points.push([x, y]);
  }
  return { points, exact: false };
}

const number = (value, digits = 3) => {
  if (Number.isNaN(value)) return "–";
  const text = value.toFixed(digits);
  return value < 1 && text === (1).toFixed(digits) ? "> 0." + "9".repeat(digits) : text;
};
const percent = (p) => `${(100 * p).toFixed(1)}\u00a0%`;
const rows = (n) => n.toLocaleString("en") + (n === 1 ? " row" : " rows");

// The state of the page, and the functions to call when it changes.
const STATE = { model: 0, i: 0, j: 1, from: 0, to: DATA.classes.length, k: DATA.classes.length - 1, decision: 0, ci: 0, cj: 0 };
const watchers = [];
function look(change) {
  Object.assign(STATE, change);
  for (const watcher of watchers) watcher();
}
