
// The games of a report: choose a cell and a game, and step through it.
(() => {
  const cells = JSON.parse(document.getElementById("games").textContent);
  const cellBox = document.getElementById("cell"), gameBox = document.getElementById("game");
  if (!cellBox) return;
  const stepper = new Stepper(document.getElementById("stepper"));
  const game = () => cells[cellBox.value].games[gameBox.value];
  function fill() {
    const games = cells[cellBox.value].games;
    gameBox.replaceChildren(...games.map((one, i) => new Option((one.right ? "✓ " : "✗ ") + (one.source || "(empty)"), i)));
    stepper.show(game());
  }
  cellBox.replaceChildren(...cells.map((one, i) => new Option(one.name, i)));
  cellBox.addEventListener("change", fill);
  gameBox.addEventListener("change", () => stepper.show(game()));
  fill();
})();
