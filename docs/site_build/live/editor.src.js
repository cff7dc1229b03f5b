/* The editor of a cell: CodeMirror with Python. `npm run editor` bundles it into editor.js. */

import { indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { indentUnit } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { syntaxHighlighting } from "@codemirror/language";
import { minimalSetup } from "codemirror";

/* Make an editor; `on` has what its keys do: run, runAndGoOn, leave, and change. */
window.slpEditor = (parent, text, label, on) => {
  const key = (name, act) => ({
    key: name,
    run: () => {
      act();
      return true;
    },
  });
  return new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(
          keymap.of([
            key("Shift-Enter", on.runAndGoOn),
            key("Ctrl-Enter", on.run),
            key("Cmd-Enter", on.run),
            key("Escape", on.leave),
          ]),
        ),
        minimalSetup,
        keymap.of([indentWithTab]), // Escape, then Tab, goes on to the next control
        indentUnit.of("    "),
        python(),
        syntaxHighlighting(classHighlighter),
        EditorView.contentAttributes.of({ "aria-label": label }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) on.change(update.state.doc.toString());
        }),
      ],
    }),
  });
};
