// Elements of the page. Texts are set as text, never as markup, with what nobody sees written out.

import { UNSEEN } from "/assets/unseen.js";

export const $ = (id) => document.getElementById(id);

// Characters that are not seen, or turn the order of others, would let a call look like another.
export const visible = (text) => text.replace(UNSEEN, (one) => `\\u{${one.codePointAt(0).toString(16).padStart(4, "0")}}`);

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null).map((child) => (typeof child === "string" ? visible(child) : child)));
  return made;
}

export const badge = (text, kind = "") => el("span", { class: `badge ${kind}` }, text);
export const pretty = (value) => JSON.stringify(value, null, 2);
export const inWords = (slug) => slug.replaceAll("_", " ");

// Of another day with its date: an approval waits for days.
function partsOf(seconds) {
  const time = new Date(seconds * 1000);
  const today = time.toDateString() === new Date().toDateString();
  return [...(today ? [] : [time.toLocaleDateString()]), time.toLocaleTimeString()];
}

export const clockTime = (seconds) => partsOf(seconds).join(", ");

// A time is broken between its date and its clock time, and nowhere else.
export const timeCell = (seconds) => el("td", {}, ...partsOf(seconds).flatMap((part) => [el("span", { class: "whole" }, part), " "]));
