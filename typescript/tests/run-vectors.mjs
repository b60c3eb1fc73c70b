// Checks the vectors of a file in any runtime: `RUNTIME run-vectors.mjs FILE`.

import { readFileSync } from "node:fs";
import process from "node:process";

import * as plaincall from "../dist/inline/index.js";
import * as small from "../dist/inline/parse.js";
import { checkVectors } from "./vectors.mjs";

const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const [name, api] of Object.entries({ plaincall, "plaincall/parse": small })) {
  console.log(`${name}: ${await checkVectors(api, vectors)}`);
}
