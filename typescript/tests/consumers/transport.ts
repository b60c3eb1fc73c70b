// A program that uses one entry only.

import { plaincallFetch } from "plaincall/openai";

export const transport = plaincallFetch({ repairRounds: 1 });
