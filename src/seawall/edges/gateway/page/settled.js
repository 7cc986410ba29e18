// What has just come or moved takes no press: whoever pressed meant what was there a moment before.
//
// It concerns the elements marked `data-settles`, each by a name of its own, so that one that is
// drawn anew in its old place is the same. What the person does themselves (`byHand`) holds nothing
// up. For assistive technology it is `aria-disabled`, which keeps the focus where it is.

const SETTLE_MS = 1000;

let places = new Map(); // name → where it was when last looked
const scrolls = new WeakMap(); // element → how far it was scrolled to then
const until = new Map(); // name → when it may be pressed again
let later = null;
let whenPressed = () => {};

function placeOf(element) {
  const { left, top } = element.getBoundingClientRect();
  return `${Math.round(left)} ${Math.round(top)}`;
}

// How far the person has scrolled to it.
function scrolledTo(element) {
  let far = 0;
  for (let one = element; one; one = one.parentElement) far += one.scrollLeft + one.scrollTop;
  return far;
}

function look(byHand = false) {
  const now = performance.now();
  const found = new Map();
  for (const element of document.querySelectorAll("[data-settles]")) {
    const name = element.dataset.settles;
    const place = placeOf(element);
    found.set(name, place);
    scrolls.set(element, scrolledTo(element));
    if (!byHand && places.get(name) !== place) until.set(name, now + SETTLE_MS);
    const held = (until.get(name) ?? 0) > now;
    if (held !== (element.getAttribute("aria-disabled") === "true")) element.setAttribute("aria-disabled", String(held));
  }
  places = found;
  for (const [name, end] of until) if (end <= now || !found.has(name)) until.delete(name);
  clearTimeout(later);
  if (until.size) later = setTimeout(() => look(true), Math.min(...until.values()) - now + 1);
}

const changes = new MutationObserver(() => look());

export function byHand(work) {
  look();
  work();
  changes.takeRecords();
  look(true);
}

export function begin(tell) {
  whenPressed = tell;
  changes.observe(document.body, { childList: true, characterData: true, subtree: true, attributes: true, attributeFilter: ["hidden", "open", "style", "class"] });
  addEventListener("resize", () => look());
  addEventListener("scroll", () => look(true), { capture: true, passive: true });
  addEventListener("click", (event) => {
    const pressed = event.target.closest?.("[data-settles]");
    if (!pressed) return;
    // A font that came late moves things too, and tells nobody; scrolling is told later than a press.
    look(scrolledTo(pressed) !== scrolls.get(pressed));
    if (pressed.getAttribute("aria-disabled") !== "true") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    whenPressed();
  }, { capture: true });
}
