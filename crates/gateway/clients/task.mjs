// The task that every client does: two calls in one reply, their results, an invalid call that is repaired, an answer.

import assert from 'node:assert/strict';

export const answer = 'Paris has 21 degrees, Oslo 7.';
export const cities = ['Paris', 'Oslo "N"'];
export const [right, wrong, unchecked, repaired] = process.argv.slice(2);
export { assert };
