
// Browse a dataset: a list of pairs to search in, and the trajectories of the chosen one in a stepper.
(() => {
  const MOST = 500; // pairs in the list at once
  const byId = (id) => document.getElementById(id);
  const pairs = JSON.parse(byId("data").textContent);
  const stepper = new Stepper(byId("stepper"));
  let chosen = null;

  function choose(pair) {
    chosen = pair;
    if (pair && pair.games.length) {
      byId("start").replaceChildren(...pair.games.map((game, i) =>
        new Option(game.origin ? "from shifted state " + game.origin : "the expert's", i)));
      byId("starts").textContent = pair.starts > pair.games.length ? "the first " + pair.games.length + " of " + pair.starts : "";
      stepper.show(pair.games[0]);
    }
    for (const button of byId("pairs").querySelectorAll("button")) {
      if (pair && button.dataset.id === String(pair.id)) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }

  function line(pair) {
    const item = document.createElement("li"), button = Stepper.add(item, "button");
    button.type = "button";
    button.dataset.id = pair.id;
    Stepper.add(button, "span", "number", pair.id);
    pair.texts.forEach((text, side) => {
      if (side) Stepper.add(button, "span", "arrow", "  →  ");
      Stepper.add(button, "span", "text", text);
    });
    button.addEventListener("click", () => choose(pair));
    return item;
  }

  function list() {
    const wanted = byId("filter").value.trim();
    const found = pairs.filter((pair) => !wanted || String(pair.id) === wanted || pair.texts.some((text) => text.includes(wanted)));
    byId("pairs").replaceChildren(...found.slice(0, MOST).map(line));
    byId("found").textContent = found.length + (found.length > MOST ? " found, " + MOST + " shown" : " found");
    const edited = found.find((pair) => pair.games.length && pair.games[0].moves.length > 1);
    choose(found.includes(chosen) ? chosen : edited ?? found[0]);
  }

  byId("filter").addEventListener("input", list);
  byId("start").addEventListener("change", () => stepper.show(chosen.games[byId("start").value]));
  list();
})();
