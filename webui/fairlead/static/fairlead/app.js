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

// Times are written in UTC; show them in the time zone of this browser.
function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (!Number.isNaN(moment.getTime())) {
      time.textContent = moment.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
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

// The first wrong field is where the admin goes on.
const wrong = document.querySelector(".wrong input, .wrong textarea");
if (wrong) {
  wrong.closest("details")?.setAttribute("open", "");
  wrong.focus();
}

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
