// One class: its ROC against all others, precision and recall, calibration. And the confusion matrix.
function drawClass() {
  const k = STATE.k;
  const name = DATA.classes[k];
  const found = DATA.by_class[k];
  const pairs = ([x, y]) => x.map((v, p) => [v / 1000, y[p] / 1000]);
  const share = DATA.counts[k] / DATA.rows;
  document.getElementById("pick-class").value = k;
  document.getElementById("class-title").textContent = `${name}, ${rows(DATA.counts[k])}: mean AUC ${number(found.auc[0])}`;
  document.getElementById("class-text").textContent =
    `The interval of the mean AUC is ${number(found.auc[1])} to ${number(found.auc[2])}. Recall ${number(found.recall[0])} ` +
    `(${number(found.recall[1])} to ${number(found.recall[2])})` +
    (found.precision === null ? "; no row is predicted as this class." : `, precision ${number(found.precision[0])} (${number(found.precision[1])} to ${number(found.precision[2])}).`);
  document.getElementById("class-roc-caption").textContent = "ROC against the other classes, each with equal weight";
  document.getElementById("class-roc").innerHTML = square("false positive rate", "true positive rate", pairs(found.roc), { chance: true, under: true });
  document.getElementById("class-pr-caption").textContent = `Precision and recall; average precision ${number(found.average_precision)}, ${number(share)} by chance`;
  const level = spot(0, share).split(",")[1];
  document.getElementById("class-pr").innerHTML = square("recall", "precision", pairs(found.pr), {
    extra: `<line class="chance" x1="${FRAME.left}" x2="${FRAME.left + FRAME.size}" y1="${level}" y2="${level}"/>`,
  });
  const bins = found.reliability;
  document.getElementById("class-cal-caption").textContent = bins ? "Calibration: share of the rows with this score that belong to the class" : "No calibration curve: these scores are not probabilities.";
  document.getElementById("class-cal").innerHTML = bins ? reliabilityPlot(bins) : "";
}

function confusionOf(i, j) {
  return DATA.decisions[STATE.decision].counts.get(i * DATA.classes.length + j) || 0;
}

function describeConfusion(i, j) {
  const n = confusionOf(i, j);
  const [low, high] = wilson(n, DATA.counts[i]);
  const what = i === j ? "are predicted right" : `are predicted as ${DATA.classes[j]}`;
  return `${n} of ${rows(DATA.counts[i])} of ${DATA.classes[i]} ${what}: ${percent(n / DATA.counts[i])} (${percent(low)} to ${percent(high)})`;
}

function wilson(hits, n) {
  const p = hits / n;
  const k = (DATA.z * DATA.z) / n;
  const middle = (p + 0.5 * k) / (1 + k);
  const reach = Math.sqrt(k * p * (1 - p) + 0.25 * k * k) / (1 + k);
  return [Math.max(0, Math.min(p, middle - reach)), Math.min(1, Math.max(p, middle + reach))];
}

if (DATA.by_class) {
  for (const decision of DATA.decisions) {
    decision.counts = new Map();
    for (let p = 0; p < decision.cells.length; p += 2) decision.counts.set(decision.cells[p], decision.cells[p + 1]);
  }
  const pick = document.getElementById("pick-class");
  DATA.classes.forEach((name, k) => pick.add(new Option(name, k)));
  pick.addEventListener("change", () => look({ k: Number(pick.value) }));
  watchers.push(drawClass);

  const choice = document.getElementById("decision");
  DATA.decisions.forEach((decision, k) => choice.add(new Option(decision.name, k)));
  choice.addEventListener("change", () => look({ decision: Number(choice.value) }));
  document.getElementById("decision-choice").hidden = DATA.decisions.length < 2;
  watchers.push(() => {
    document.getElementById("decision-text").textContent = DATA.decisions[STATE.decision].text;
    document.getElementById("confusion-said").textContent = describeConfusion(STATE.ci, STATE.cj) + ".";
  });
  window.confusionMap = heatMap(document.getElementById("confusion"), document.getElementById("confusion-tip"), {
    // On the diagonal, the share predicted wrong; elsewhere a square root, so that one row in a hundred is visible.
    bad: (i, j) => (i === j ? 1 - confusionOf(i, j) / DATA.counts[i] : Math.sqrt(confusionOf(i, j) / DATA.counts[i])),
    text: (i, j) => (confusionOf(i, j) ? String(confusionOf(i, j)) : ""),
    describe: describeConfusion,
    at: () => [STATE.ci, STATE.cj],
    choose: (ci, cj) => look({ ci, cj }),
    diagonal: true,
    axes: ["predicted class", "true class"],
    corner: "rows: true class, columns: predicted class",
  });
  if (DATA.calibration) document.getElementById("calibration").innerHTML = reliabilityPlot(DATA.calibration);
}
