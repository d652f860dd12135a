// Small comforts; every page works without them.
"use strict";

// Show only the fields that the chosen kind of check, protocol or scheduler has: data-when="check_kind=http ping".
function showFields(form) {
  for (const part of form.querySelectorAll("[data-when]")) {
    const [name, values] = part.dataset.when.split("=");
    const chosen = form.querySelector(`input[name=${name}]:checked`);
    const wanted = !chosen || values.split(" ").includes(chosen.value);
    part.hidden = !wanted && !part.querySelector(".wrong, .note");
  }
}

// Times are written in UTC; show them in the time zone of this browser, with hours to 23 in every language.
function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (!Number.isNaN(moment.getTime())) {
      time.textContent = moment.toLocaleString([], { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });
    }
  }
}

for (const form of document.querySelectorAll("form:has([data-when])")) {
  form.addEventListener("change", () => showFields(form));
  showFields(form);
}
localTimes(document);
document.body.addEventListener("htmx:afterSwap", () => localTimes(document)); // what is fetched anew has some, too

// Seconds that are left: counted down here between two answers of the box.
setInterval(() => {
  for (const place of document.querySelectorAll("[data-left]")) {
    place.dataset.left = Math.max(0, Number(place.dataset.left) - 1);
    place.textContent = Math.round(place.dataset.left);
  }
}, 1000);

// A file that is chosen fills in a text: data-into="id of the text".
for (const input of document.querySelectorAll("input[type=file][data-into]")) {
  input.addEventListener("change", async () => {
    if (input.files.length) {
      document.getElementById(input.dataset.into).value = await input.files[0].text();
    }
  });
}

// A part that is fetched takes the focus (autofocus) only from what asked for it: who has gone on stays where he types.
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const at = document.activeElement;
  if (at !== document.body && at !== event.detail.requestConfig?.elt) {
    event.detail.serverResponse = event.detail.serverResponse.replaceAll(" autofocus", "");
  }
});

// What is fetched again and again is not replaced under a finger: a button that is pressed before and let go after that
// would not have been clicked, and nothing would happen. The next answer comes soon.
let pressed = null;
const press = (event) => { pressed = event.target; };
const letGo = () => { pressed = null; };
addEventListener("pointerdown", press, true);
addEventListener("keydown", (event) => { if (event.key === " ") press(event); }, true);
for (const name of ["pointerup", "pointercancel", "dragend", "keyup"]) addEventListener(name, letGo, true);
addEventListener("blur", letGo); // of the window alone
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const again = event.detail.requestConfig?.elt.getAttribute("hx-trigger")?.includes("every");
  if (again && pressed && event.detail.target.contains(pressed)) event.detail.shouldSwap = false;
});

// The first wrong field is where the admin goes on.
const wrong = document.querySelector(".wrong input, .wrong textarea");
if (wrong) {
  wrong.closest("details")?.setAttribute("open", "");
  wrong.focus();
}

// Whoever comes for one setting finds it open, in sight, and ready to be changed.
function comeTo(place) {
  for (let part = place; part; part = part.parentElement) {
    if (part.tagName === "DETAILS") part.open = true;
    if (part.dataset.when) part.hidden = false;
  }
  place.scrollIntoView({ block: "center" });
  place.querySelector("input:checked, input:not([type=radio]), select, textarea")?.focus({ preventScroll: true });
}

function comeToAnchor() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (place?.id.startsWith("at-")) comeTo(place);
}

// After the browser has gone there itself, which takes the focus away from everything.
for (const name of ["load", "hashchange"]) window.addEventListener(name, comeToAnchor);

// Search: "/" goes to the field, arrows through what it found, Enter to the first, Escape away from it.
const search = document.getElementById("search");
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea, [contenteditable]");
  if (search && event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});
search?.form.addEventListener("keydown", (event) => {
  const stops = [search, ...search.form.querySelectorAll(".results a")];
  const at = stops.indexOf(document.activeElement);
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    stops[(at + (event.key === "ArrowDown" ? 1 : -1) + stops.length) % stops.length].focus();
  } else if (event.key === "Escape") {
    document.getElementById("found").replaceChildren();
    search.focus();
  } else if (event.key === "Enter" && at === 0 && stops.length > 1) {
    // Only what was found for these words; else the page of the search answers.
    if (search.form.querySelector(".results").dataset.asked === search.value.trim().replace(/\s+/g, " ")) {
      event.preventDefault();
      stops[1].click();
    }
  }
});

// A live page whose box does not answer says so, instead of showing old numbers in silence.
const lost = document.querySelector(".lost");
for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  document.body.addEventListener(name, () => { lost.hidden = false; document.body.classList.add("stale"); });
}
document.body.addEventListener("htmx:afterOnLoad", (event) => {
  if (event.detail.successful !== false && event.detail.xhr.status < 400) {
    lost.hidden = true;
    document.body.classList.remove("stale");
  }
});
