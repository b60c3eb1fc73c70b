// Writes the vectors, or one in SHARE, into a file, for runtimes that cannot start the command: write-vectors.mjs FILE [SHARE]

import { writeFileSync } from "node:fs";

import { vectors } from "./specification.mjs";

const [file, share = "1"] = process.argv.slice(2);
writeFileSync(file, JSON.stringify(vectors().filter((_, place) => place % Number(share) === 0)));
