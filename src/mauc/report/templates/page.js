// Menus and buttons, then the first state.
document.documentElement.classList.add("js");
const option = (value, label) => new Option(label, value);

function fillMenus() {
  const model = document.getElementById("model");
  DATA.models.forEach((m, k) => model.add(option(k, m.name)));
  model.addEventListener("change", () => look({ model: Number(model.value) }));
  document.getElementById("model-choice").hidden = DATA.models.length < 2;

  const range = document.getElementById("range");
  const n = DATA.classes.length;
  const total = n + DATA.left_out;
  range.add(option(`0,${n}`, DATA.left_out ? `the ${n} rarest of ${total}` : `all ${n}`));
  for (const size of [100, 40, 20]) {
    if (n < 1.5 * size) continue;
    range.add(option(`${n - size},${n}`, `the ${size} rarest`));
    range.add(option(`0,${size}`, DATA.left_out ? `the ${size} most frequent of these` : `the ${size} most frequent`));
  }
  range.addEventListener("change", () => {
    const [from, to] = range.value.split(",").map(Number);
    const inside = (k) => k >= from && k < to;
    const pair = inside(STATE.i) && inside(STATE.j) ? {} : { i: to - 1, j: to - 2 };
    look({ from, to, ...pair, ...(inside(STATE.ci) && inside(STATE.cj) ? {} : { ci: to - 1, cj: to - 1 }) });
  });
  document.getElementById("range-choice").hidden = range.length < 2;

  for (const side of ["i", "j"]) {
    const pick = document.getElementById(`pick-${side}`);
    DATA.classes.forEach((name, k) => pick.add(option(k, name)));
    pick.addEventListener("change", () => {
      const chosen = Number(pick.value);
      const other = side === "i" ? "j" : "i";
      look(chosen === STATE[other] ? { [side]: chosen, [other]: STATE[side] } : { [side]: chosen });
    });
  }
}

document.getElementById("swap").addEventListener("click", () => look({ i: STATE.j, j: STATE.i }));

document.getElementById("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  repaint();
});

for (const button of document.querySelectorAll("button.show-pair")) {
  const [i, j] = [button.dataset.i, button.dataset.j].map((k) => Number(k) - DATA.left_out);
  button.disabled = i < 0 || j < 0;
  button.addEventListener("click", () => {
    look({ i, j });
    openPair();
  });
}

for (const button of document.querySelectorAll("button.show-mistake")) {
  const [ci, cj] = [button.dataset.i, button.dataset.j].map((k) => Number(k) - DATA.left_out);
  button.disabled = ci < 0 || cj < 0;
  button.addEventListener("click", () => {
    look({ ci, cj });
    document.getElementById("confusion").focus();
  });
}

for (const button of document.querySelectorAll("button.show-class")) {
  const k = Number(button.dataset.k) - DATA.left_out;
  button.disabled = k < 0;
  button.addEventListener("click", () => {
    look({ k });
    const view = document.getElementById("class-view");
    view.scrollIntoView({ block: "nearest" });
    view.focus({ preventScroll: true });
  });
}

fillMenus();
legend();
// Open at the weakest pair in its worse direction, the weakest class, and the most reliable mistake.
const startAt = (selector) => {
  const button = document.querySelector(`${selector}:not(:disabled)`);
  return button ? [button.dataset.i, button.dataset.j].map((k) => Number(k) - DATA.left_out) : null;
};
const [pair, mistake] = [startAt("#worst button.show-pair"), startAt("#mistakes button.show-mistake")];
const first = pair && (aucOf(0, ...pair) <= aucOf(0, pair[1], pair[0]) ? pair : [pair[1], pair[0]]);
const worst = DATA.by_class ? DATA.by_class.reduce((low, found, k) => (found.auc[2] < DATA.by_class[low].auc[2] ? k : low), 0) : 0;
look({ k: worst, ...(first ? { i: first[0], j: first[1] } : {}), ...(mistake ? { ci: mistake[0], cj: mistake[1] } : {}) });
