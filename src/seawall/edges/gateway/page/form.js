// A form made from a schema, and what was typed into it as JSON.

import { el } from "/assets/drawn.js";

const MAX_SHAPE = 200; // characters that say what the items of a list are
const MAX_DEEP = 3; // levels of it

// A schema may be `true` or `false`, and one that nobody vouches for may be anything.
const asObject = (schema) => (schema !== null && typeof schema === "object" && !Array.isArray(schema) ? schema : {});
const asWords = (value) => (typeof value === "string" ? value : value === undefined ? null : JSON.stringify(value));

// What a reference within the schema points to; what is said beside it counts too.
function resolved(schema, root, hops = 8) {
  const { $ref, ...beside } = asObject(schema);
  if (typeof $ref !== "string" || !$ref.startsWith("#/") || !hops) return asObject(schema);
  const steps = $ref.slice(2).split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const found = steps.reduce((place, step) => (Object.hasOwn(Object(place), step) ? place[step] : undefined), root);
  return { ...resolved(found, root, hops - 1), ...beside };
}

function typesOf(schema, root) {
  const variants = ([schema.anyOf, schema.oneOf].find(Array.isArray) ?? []).map((variant) => resolved(variant, root));
  if (schema.type === undefined && variants.some((variant) => variant.type === undefined)) return new Set(); // any JSON
  const types = [schema.type, ...variants.map((variant) => variant.type)].flat();
  return new Set(types.filter((type) => typeof type === "string" && type !== "null"));
}

// In words and braces what a value looks like, some levels down: `array of {sku: string, count?: integer}`.
function shapeOf(schema, root, deep = MAX_DEEP) {
  const one = resolved(schema, root);
  const variants = [one.anyOf, one.oneOf].find(Array.isArray);
  if (variants && deep) return [...new Set(variants.map((variant) => shapeOf(variant, root, deep - 1)))].filter((said) => said !== "null").join(" or ");
  if (Array.isArray(one.enum)) return one.enum.map((value) => JSON.stringify(value)).join(" | ");
  const types = [one.type].flat().filter((type) => typeof type === "string" && type !== "null");
  if (types.length !== 1) return types.join(" or ") || (one.type === "null" ? "null" : "any JSON");
  if (types[0] === "array" && one.items !== undefined && deep) return `array of ${shapeOf(one.items, root, deep - 1)}`;
  const members = Object.entries(asObject(one.properties));
  if (types[0] !== "object" || !members.length || !deep) return types[0];
  const required = new Set(Array.isArray(one.required) ? one.required : []);
  return `{${members.map(([name, member]) => `${name}${required.has(name) ? "" : "?"}: ${shapeOf(member, root, deep - 1)}`).join(", ")}}`;
}

const shortened = (text) => (text.length > MAX_SHAPE ? `${text.slice(0, MAX_SHAPE)}…` : text);

export function fieldsOf(schema) {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return Object.entries(asObject(schema.properties)).map(([name, member], index) =>
    fieldOf(name, resolved(member, schema), required.has(name), `field-${index}`, schema));
}

function fieldOf(name, schema, required, id, root) {
  const types = typesOf(schema, root);
  const only = types.size === 1 ? [...types][0] : null;
  // Not `name`: a form has its controls as members under their names, before its own.
  const common = { id, "data-name": name, "data-kind": "json", "aria-describedby": `${id}-hint`, "aria-required": String(required) };
  let input;
  if (Array.isArray(schema.enum)) {
    input = el("select", { ...common, "data-kind": "choice" }, el("option", { value: "" }, required ? "choose" : "leave out"),
      ...schema.enum.map((value) => el("option", { value: JSON.stringify(value) }, typeof value === "string" ? value : JSON.stringify(value))));
  } else if (only === "boolean") {
    input = el("select", { ...common, "data-kind": "choice" }, el("option", { value: "" }, required ? "choose" : "leave out"),
      el("option", { value: "true" }, "true"), el("option", { value: "false" }, "false"));
  } else if (only === "string") {
    const secret = schema.format === "password" || schema.writeOnly === true;
    input = secret ? el("input", { ...common, type: "password", "data-kind": "text" })
      : el("textarea", { ...common, rows: (schema.maxLength ?? 1000) > 120 ? 2 : 1, "data-kind": "text" });
  } else if (only === "integer" || only === "number") {
    input = el("input", { ...common, type: "text", inputmode: only === "integer" ? "numeric" : "decimal", "data-kind": "number" });
  } else {
    input = el("textarea", { ...common, rows: 2 });
  }
  const isNested = types.has("array") || types.has("object");
  const kind = isNested ? shortened(shapeOf(schema, root)) : types.size ? [...types].join(" or ") : "any JSON";
  const hint = [asWords(schema.description), `${kind}${required ? ", required" : ""}`, "default" in schema ? `default ${JSON.stringify(schema.default)}` : null]
    .filter(Boolean).join(" · ");
  return el("div", { class: "field" }, el("label", { for: id }, name), input, el("span", { class: "hint", id: `${id}-hint` }, hint));
}

const inputsOf = (form) => [...form.querySelectorAll("[data-name]")];

export function fill(form, values) {
  for (const input of inputsOf(form)) {
    const value = Object.hasOwn(values, input.dataset.name) ? values[input.dataset.name] : undefined;
    if (value === undefined) input.value = "";
    else if (input.dataset.kind === "text" && typeof value === "string") input.value = value;
    else input.value = JSON.stringify(value, null, input.dataset.kind === "json" ? 1 : 0);
  }
}

// As it was typed, and where the typing was: for the form that takes the place of this one.
export function typedIn(form) {
  const at = form.contains(document.activeElement) ? document.activeElement : null;
  return {
    values: inputsOf(form).map((input) => [input.dataset.name, input.value]),
    focused: at?.dataset.name ?? null, from: at?.selectionStart ?? null, to: at?.selectionEnd ?? null,
  };
}

export function typeInto(form, { values, focused, from, to }) {
  const typed = new Map(values);
  for (const input of inputsOf(form)) {
    input.value = typed.get(input.dataset.name) ?? "";
    if (input.selectedIndex === -1) input.value = ""; // that choice is gone
    if (input.dataset.name !== focused) continue;
    input.focus({ preventScroll: true });
    if (from !== null && input.selectionStart !== null && "setSelectionRange" in input) input.setSelectionRange(from, to);
  }
}

// What is JSON is sent digit by digit as it was typed: a number of this language has no more than 17.
// What cannot be read is sent as text: the gateway says better what is wrong with it.
function jsonOf(input) {
  if (input.dataset.kind === "text") return JSON.stringify(input.value);
  try {
    JSON.parse(input.value);
    return input.value;
  } catch {
    return JSON.stringify(input.value);
  }
}

// The arguments as JSON text.
export function argumentsOf(form) {
  const filled = inputsOf(form).filter((input) => input.value !== "");
  return `{${filled.map((input) => `${JSON.stringify(input.dataset.name)}:${jsonOf(input)}`).join(",")}}`;
}
