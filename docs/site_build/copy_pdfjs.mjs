/* Copies pdf.js from node_modules to the site: `npm run pdfjs`. */

import { copyFileSync } from "node:fs";

const from = new URL("../../node_modules/pdfjs-dist/", import.meta.url);
const to = new URL("../assets/book/pdfjs/", import.meta.url);
for (const name of ["pdf.min.mjs", "pdf.worker.min.mjs"])
  copyFileSync(new URL(`legacy/build/${name}`, from), new URL(name, to));
copyFileSync(new URL("LICENSE", from), new URL("LICENSE.txt", to));
