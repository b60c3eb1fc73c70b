// Writes the vectors into a file, for runtimes that cannot start the command.

import { writeFileSync } from "node:fs";

import { vectors } from "./specification.mjs";

writeFileSync(process.argv[2], JSON.stringify(vectors()));
