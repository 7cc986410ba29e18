// What has just come or moved takes no press: whoever pressed meant what was there a moment before.
//
// It concerns the elements marked `data-settles`, each by a name of its own, so that one that is
// drawn anew in its old place is the same. What the person does themselves (`byHand`) holds nothing
// up. For assistive technology it is `aria-disabled`, which keeps the focus where it is.

const SETTLE_MS = 1000;

let places = new Map(); // name → where it was when last looked
const until = new Map(); // name → when it may be pressed again
let later = null;
let whenPressed = () => {};

// Where it is on its page, how far the person has scrolled to it, and whether that is to an end.
function placeOf(element) {
  const { left, top } = element.getBoundingClientRect();
  const place = { left, top, scrolled: 0, isAtEnd: false };
  for (let one = element.parentElement; one; one = one.parentElement) {
    place.left += one.scrollLeft;
    place.top += one.scrollTop;
    place.scrolled += one.scrollLeft + one.scrollTop;
    place.isAtEnd ||= one.scrollTop > 0 && one.scrollTop + one.clientHeight >= one.scrollHeight - 1;
  }
  return place;
}

// Who scrolls moves things themselves. But what gets shorter at its end is scrolled back by that.
function hasMoved(before, now) {
  if (!before || Math.abs(before.left - now.left) >= 2 || Math.abs(before.top - now.top) >= 2) return true;
  return now.isAtEnd && now.scrolled < before.scrolled - 1;
}

function look(byHand = false) {
  const now = performance.now();
  const found = new Map();
  for (const element of document.querySelectorAll("[data-settles]")) {
    const name = element.dataset.settles;
    const place = placeOf(element);
    found.set(name, place);
    if (!byHand && hasMoved(places.get(name), place)) until.set(name, now + SETTLE_MS);
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
    look(); // a font that came late moves things too, and tells nobody
    const held = pressed.getAttribute("aria-disabled") === "true";
    if (held) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
    whenPressed(held);
  }, { capture: true });
}
