// Elements and texts: every text that a page shows passes through here, as text and never as markup.
"use strict";

// The element of a page with this id. `Elements` is generated from the pages.
/** @template {keyof Elements} Id @param {Id} id @returns {Elements[Id]} */
const byId = (id) => /** @type {Elements[Id]} */ (document.getElementById(id));

// The closest element around the target of an event that a selector names.
/** @param {Event} event @param {string} selector @returns {HTMLElement | null} */
const around = ({ target }, selector) => (target instanceof Element ? target.closest(selector) : null);

// A text in which nothing is hidden: control characters, those that turn the direction of writing, and those that take
// no place are shown as signs.
const HIDDEN = /[\0-\x08\v\f\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\r(?!\n)/gu;
/** @param {string} text @returns {string} */
function seen(text) {
  return text.replace(HIDDEN, (c) => {
    const code = c.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : `\\u{${code.toString(16)}}`;
  });
}

// An element with a class, a text, and children. All texts go in here, and `seen`.
/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} [className]
 * @param {string | null} [text]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
function make(tag, className, text, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined && text !== null) element.textContent = seen(text);
  element.append(...children.map((child) => (typeof child === "string" ? seen(child) : child)));
  return element;
}

// A sentence, in which the texts between backticks are code.
/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} className
 * @param {string} text
 * @param {...(Node | string)} before
 * @returns {HTMLElementTagNameMap[T]}
 */
function sentence(tag, className, text, ...before) {
  const parts = text.split("`");
  // An odd one out is a character of the text.
  if (parts.length % 2 === 0) parts.push(parts.splice(-2).join("`"));
  return make(tag, className, null, ...before, ...parts.map((part, at) => (at % 2 === 0 ? part : make("code", "", part))));
}

/** @param {number} ms */
function time(ms) {
  if (ms < 100) return `${ms} ms`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
}

// The same to the millisecond.
/** @param {number} ms */
const moment = (ms) => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(3)} s`);

/** @param {number} number @param {string} thing */
const count = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;

