// A program in CommonJS.

import { Toolbox, tool, type ParsedDocument } from "plaincall";
import { plaincallFetch } from "plaincall/openai";
import { parse } from "plaincall/parse";

const document: ParsedDocument = parse("a");
export = [document, new Toolbox([tool({ name: "a", input: {} })]), plaincallFetch()];
