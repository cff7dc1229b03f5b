/* What the pages' scripts find that no script declares. */

/** alphaTab's own interface, which its script brings. */
declare const alphaTab: any;

/** What workers have. */
declare function importScripts(...addresses: string[]): void;

interface XMLHttpRequest {
  /** Whether a request for the search's index waits until somebody searches. */
  late?: boolean;
}

/** An element of one of our own pages: a field, a link, a fold, a frame, or the player. */
interface OnPage extends HTMLInputElement {
  contentWindow: Window;
  contentDocument: Document;
  href: string;
  /** Of a fold; of the player, what hands out alphaTab. */
  open: any;
  options: HTMLOptionsCollection;
  show(tex: string, how?: string): Promise<void>;
  firstDeed(): Promise<void>;
  guitarPro(): Uint8Array<ArrayBuffer>;
  /** Of a line of a score that alphaTab draws: which it is, whether it is asked for, and what is
     drawn. */
  layoutResultId?: string;
  resultState?: number;
  renderedResult?: Element[];
}

/** CodeMirror, as far as a cell asks for it. */
interface CellEditor {
  focus(): void;
  destroy(): void;
}

/** What an editor's keys do. */
interface CellEditorActions {
  run(): void;
  runAndGoOn(): void;
  leave(): void;
  change(text: string): void;
}

interface Window {
  slpEditor(parent: Element, text: string, label: string, on: CellEditorActions): CellEditor;
}

interface DocumentEventMap {
  /** What a server, or a cell that has run, has put into the open page. */
  "slp:replaced": CustomEvent<Element[]>;
}

interface ParentNode {
  querySelector(selectors: string): OnPage | null;
  querySelectorAll(selectors: string): NodeListOf<OnPage>;
}
interface Document {
  getElementById(elementId: string): OnPage | null;
}
interface EventTarget {
  closest?(selectors: string): OnPage | null;
  value?: string;
  checked?: boolean;
  files?: FileList;
}
interface Element {
  closest(selectors: string): OnPage | null;
  dataset: DOMStringMap;
  focus(options?: FocusOptions): void;
  href: string;
}
