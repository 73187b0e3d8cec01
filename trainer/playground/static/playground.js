// The playground: asks POST /edit for games, shows them in a stepper, and remembers the ones before (undo).
"use strict";

(() => {
  const SHOWN = 8; // examples at once
  const byId = (id) => document.getElementById(id);
  const stepper = new Stepper(byId("game"));
  const before = []; // [{text, game, step}], the last one is what undo returns to
  let about = null, now = null, firstExample = 0, asked = 0;

  function problem(text) {
    byId("problem").hidden = !text;
    byId("problem").textContent = text;
  }

  async function ask(path, question) {
    const options = question && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question) };
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new Error("no answer: is `trainer play` still running?");
    }
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  }

  function display(entry) {
    now = entry;
    byId("text").value = entry ? entry.text : "";
    byId("game").hidden = !entry;
    byId("undo").disabled = before.length === 0;
    byId("here").disabled = !entry;
    if (entry) stepper.show(entry.game, entry.step);
  }

  async function edit(text, target) {
    const number = ++asked;
    byId("status").textContent = "editing …";
    byId("edit").disabled = true;
    try {
      const game = await ask("/edit", target === undefined ? { text } : { text, target });
      if (number !== asked) return; // a later question was asked meanwhile
      problem("");
      if (now) before.push({ ...now, step: stepper.step });
      display({ text, game, step: 0 });
    } catch (error) {
      if (number === asked) problem(error.message);
    } finally {
      if (number === asked) settle();
    }
  }

  function settle() {
    byId("status").textContent = "";
    byId("edit").disabled = false;
  }

  function examples() {
    const shown = about.examples.slice(firstExample, firstExample + SHOWN);
    byId("list").replaceChildren(...shown.map((one) => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.textContent = one.text || "(empty)";
      button.addEventListener("click", () => { byId("text").value = one.text; edit(one.text, one.target); });
      item.append(button);
      return item;
    }));
    byId("more").hidden = about.examples.length <= SHOWN;
  }

  function quoted(text) {
    return "'" + text.replaceAll("'", "'\\''") + "'";
  }

  function introduce() {
    document.title = about.model + " on " + about.task;
    const pieces = about.tokens === "chars" ? "characters" : "tokens with a space between them";
    const reads = about.max_state === null ? "any " + pieces : "at most " + about.max_state + " " + pieces;
    const edits = about.max_steps === null ? "" : ", edits in at most " + about.max_steps + " steps";
    byId("about").textContent = about.model + " on " + about.task + ": reads " + reads + edits + ".";
    byId("examples").hidden = about.examples.length === 0;
    examples();
    const text = about.examples.length ? about.examples[0].text : "…";
    byId("curl").textContent = "curl " + location.origin + "/edit -H 'Content-Type: application/json' -d " +
      quoted(JSON.stringify({ text }));
  }

  byId("form").addEventListener("submit", (event) => { event.preventDefault(); edit(byId("text").value); });
  byId("text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("form").requestSubmit();
  });
  byId("undo").addEventListener("click", () => {
    asked++; // what was asked before is of no interest any more
    settle();
    problem("");
    display(before.pop());
  });
  byId("here").addEventListener("click", () => {
    byId("text").value = stepper.tokensAt(stepper.step).join(now.game.tokens === "chars" ? "" : " ");
    byId("text").focus();
  });
  byId("more").addEventListener("click", () => {
    firstExample = firstExample + SHOWN < about.examples.length ? firstExample + SHOWN : 0;
    examples();
  });
  ask("/agent").then((found) => { about = found; introduce(); }).catch((error) => problem(error.message));
})();
