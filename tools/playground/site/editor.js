// The editor: CodeMirror with Python's colours, of which this is all that the page bundles.

import { indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";

const markLine = StateEffect.define();
const marked = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    if (transaction.docChanged) return Decoration.none;
    const effect = transaction.effects.find((each) => each.is(markLine));
    if (!effect) return marks;
    return effect.value === null ? Decoration.none : Decoration.set([Decoration.line({ class: "wrong-line" }).range(effect.value)]);
  },
  provide: (field) => EditorView.decorations.from(field),
});
const colours = syntaxHighlighting(HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.comment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--code-name)" },
  { tag: [tags.meta], color: "var(--code-meta)" },
]));

export class Editor {
  constructor(parent, { onRun, onChange }) {
    this.onChange = onChange;
    const run = keymap.of([{ key: "Mod-Enter", run: () => (onRun(), true) }]);
    this.extensions = [
      run, basicSetup, keymap.of([indentWithTab]), indentUnit.of("    "), python(), colours, marked,
      EditorView.contentAttributes.of({ "aria-label": "Program" }),
      EditorView.updateListener.of((update) => update.docChanged && this.onChange()),
    ];
    this.view = new EditorView({ parent, state: this.stateOf("") });
  }

  stateOf(text) {
    return EditorState.create({ doc: text, extensions: this.extensions });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  // Shows another file: what was undone in one does not come back in the other.
  set text(text) {
    this.view.setState(this.stateOf(text));
  }

  // Marks a line, counted from 1, and scrolls to it; null takes the mark away.
  mark(number) {
    const { doc } = this.view.state;
    const line = number === null ? null : doc.line(Math.min(number, doc.lines));
    const effects = [markLine.of(line === null ? null : line.from)];
    if (line) effects.push(EditorView.scrollIntoView(line.from, { y: "center" }));
    this.view.dispatch({ effects });
  }
}
