// A game to step through: each state with its edit marked, the action with its probabilities, and the verdict.
//
// const stepper = new Stepper(element); stepper.show(game), where a game is
//   tokens   "words" or "chars": whether a space belongs between two tokens
//   moves    [{state, action, verdict, probabilities, removed, written, holds}], all but the first three optional:
//            removed are places in this state, written places in the next one, holds whether the equation is right
//   result   the tokens of the text that was returned; holds, as above
//   right, failure, target, ended   optional: how it was judged, and how it ended
//
// Texts are added as text, never as markup. Both packages carry this file byte for byte.
"use strict";

const MOST_LISTED = 100; // moves in the list below the state; a longer game shows those around the current one

class Stepper {
  constructor(root) {
    this.root = root;
    this.timer = null;
    this.onmove = () => {};
    root.classList.add("stepper");
    root.tabIndex = 0;
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", "Game");
    this.state = Stepper.add(root, "p", "state");
    this.state.setAttribute("aria-live", "polite");
    this.action = Stepper.add(root, "p", "action");
    const bar = Stepper.add(root, "p", "bar");
    this.first = this.button(bar, "first", "«", "First step", () => this.go(-Infinity));
    this.back = this.button(bar, "back", "← back", "One step back", () => this.go(-1));
    this.run = this.button(bar, "run", "▶", "Play the game", () => this.toggle());
    this.forward = this.button(bar, "forward", "forward →", "One step forward", () => this.go(1));
    this.last = this.button(bar, "last", "»", "Last step", () => this.go(Infinity));
    this.where = Stepper.add(bar, "span", "where");
    this.verdict = Stepper.add(root, "p", "outcome");
    this.list = Stepper.add(root, "ol", "moves");
    root.addEventListener("keydown", (event) => {
      if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      if (event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own keys
      const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      this.go(by);
    });
  }

  static add(parent, tag, kind, text) {
    const element = document.createElement(tag);
    if (kind) element.className = kind;
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  button(parent, name, text, title, act) {
    const button = Stepper.add(parent, "button", name, text);
    button.type = "button";
    button.title = title;
    button.addEventListener("click", () => { if (name !== "run") this.stop(); act(); });
    return button;
  }

  show(game, step = 0) {
    this.stop();
    this.game = game;
    this.step = Math.min(Math.max(step, 0), game.moves.length);
    this.draw();
  }

  go(by) {
    if (!this.game) return;
    this.step = Math.min(Math.max(this.step + by, 0), this.game.moves.length);
    this.draw();
  }

  toggle() {
    if (this.timer) { this.stop(); return; }
    if (this.step === this.game.moves.length) this.go(-Infinity);
    this.timer = setInterval(() => {
      this.go(1);
      if (this.step === this.game.moves.length) this.stop();
    }, 900);
    this.run.textContent = "■";
    this.run.title = "Pause";
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.run.textContent = "▶";
    this.run.title = "Play the game";
  }

  tokensAt(step) {
    const move = this.game.moves[step];
    return move ? move.state : this.game.result;
  }

  // The state before a move with its edit marked: [[kind, tokens]], kind "del", "ins" or "".
  static merged(before, after, removed = [], written = []) {
    const gone = new Set(removed), fresh = new Set(written), parts = [];
    const push = (kind, token) => {
      if (parts.length && parts[parts.length - 1][0] === kind) parts[parts.length - 1][1].push(token);
      else parts.push([kind, [token]]);
    };
    let i = 0, j = 0;
    while (i < before.length || j < after.length) {
      if (i < before.length && gone.has(i)) push("del", before[i++]);
      else if (j < after.length && fresh.has(j)) push("ins", after[j++]);
      else if (i < before.length && before[i] === after[j]) { push("", before[i++]); j++; }
      else return [["", before]]; // marks that do not fit the states: none are shown
    }
    return parts;
  }

  // Put the state before a move into an element, marked; after the last move, the result.
  write(element, step) {
    const move = this.game.moves[step], before = this.tokensAt(step);
    const glue = this.game.tokens === "chars" ? "" : " ";
    element.replaceChildren();
    const parts = move ? Stepper.merged(before, this.tokensAt(step + 1), move.removed, move.written) : [["", before]];
    if (!before.length && !parts.some(([, tokens]) => tokens.length)) Stepper.add(element, "i", "empty", "(empty)");
    parts.forEach(([kind, tokens], number) => {
      if (number) element.append(glue);
      const text = tokens.join(glue);
      if (kind) Stepper.add(element, kind, "", text);
      else element.append(text);
    });
  }

  // The action of a move, token by token, and what came of it.
  say(element, move) {
    element.replaceChildren();
    move.action.forEach((token, slot) => {
      const chip = Stepper.add(element, "span", "chip");
      Stepper.add(chip, "code", "", token);
      element.append(" ");
      if (!move.probabilities) return;
      const chance = move.probabilities[slot];
      chip.append(" ");
      Stepper.add(chip, "span", "chance", (100 * chance).toFixed(chance > 0.9995 || chance < 0.9 ? 0 : 1) + " %");
      chip.style.setProperty("--chance", 100 * chance + "%");
      chip.classList.toggle("unsure", chance < 0.5);
    });
    if (move.verdict) Stepper.add(element, "span", "verdict " + Stepper.kind(move.verdict), Stepper.words(move.verdict));
  }

  static kind(verdict) {
    return verdict === "applied" || verdict === "done" ? verdict : "refused";
  }

  static words(verdict) {
    return Stepper.kind(verdict) === "refused" ? "refused: " + verdict.replaceAll("-", " ") : verdict;
  }

  draw() {
    const { game, step } = this, last = game.moves.length, move = game.moves[step];
    this.write(this.state, step);
    const holds = move ? move.holds : game.holds;
    if (typeof holds === "boolean") {
      this.state.append(" ");
      Stepper.add(this.state, "span", holds ? "equation right" : "equation wrong", holds ? "holds" : "does not hold");
    }
    if (move) this.say(this.action, move);
    else this.action.replaceChildren(...[Stepper.ended(game)].filter(Boolean));
    this.where.textContent = "step " + step + " of " + last;
    this.judge();
    this.first.disabled = this.back.disabled = step === 0;
    this.last.disabled = this.forward.disabled = step === last;
    this.run.disabled = last === 0;
    this.trace();
    this.onmove(this);
  }

  static ended(game) {
    const how = game.ended ?? "done";
    if (how === "done") return "returned";
    return how === "limit" ? "returned: no DONE within " + game.moves.length + " steps" : "returned: " + Stepper.words(how);
  }

  judge() {
    const { game } = this;
    this.verdict.replaceChildren();
    this.verdict.hidden = typeof game.right !== "boolean";
    if (this.verdict.hidden) return;
    const text = game.right ? "right" : "wrong" + (game.failure ? ": " + game.failure : "");
    Stepper.add(this.verdict, "span", game.right ? "judged right" : "judged wrong", text);
    if (typeof game.target !== "string") return;
    this.verdict.append("; wanted: ");
    Stepper.add(this.verdict, "span", "target", game.target);
  }

  // All moves, one a line; a click leads there.
  trace() {
    const { game, step } = this, last = game.moves.length;
    const first = Math.max(0, Math.min(step - MOST_LISTED / 2, last - MOST_LISTED));
    this.list.start = first;
    this.list.replaceChildren();
    for (let number = first; number <= Math.min(last, first + MOST_LISTED); number++) {
      const line = Stepper.add(this.list, "li", number === step ? "now" : "");
      if (number === step) line.setAttribute("aria-current", "step");
      this.write(Stepper.add(line, "span", "line"), number);
      const move = game.moves[number];
      if (move) Stepper.add(line, "small", Stepper.kind(move.verdict || "applied"),
        move.action.join(" ") + (move.verdict && move.verdict !== "applied" && move.verdict !== "done" ? " → " + Stepper.words(move.verdict) : ""));
      line.addEventListener("click", () => { this.stop(); this.go(number - this.step); });
    }
  }
}
