// While a change waits to be confirmed: follow the box to its new address, and send what confirms it.
// Without this script the buttons do the same.
"use strict";

const SILENCE = 4000; // milliseconds without an answer from here until the new address is tried
const QUICK = 2500; // a refusal that comes later is none: something waited in vain
const PATIENCE = 10000; // for an answer from there
const SURE = 3; // quick refusals in a row

// "answers": a web server with a certificate that this browser trusts. "refuses": something said no, fast: a
// certificate that is not trusted yet, a closed port, no way there. "silent": nothing came.
async function ask(url, patience) {
  const began = Date.now();
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), patience);
  try {
    await fetch(url, { mode: "no-cors", cache: "no-store", credentials: "omit", signal: stop.signal });
    return "answers";
  } catch {
    return stop.signal.aborted || Date.now() - began >= QUICK ? "silent" : "refuses";
  } finally {
    clearTimeout(timer);
  }
}

// The box's certificate is its own, so a browser that has not seen it at this address refuses it. That tells the
// box from an address where nobody is: its firewall says nothing at other ports, where others refuse those as well.
// Once is not enough: Chromium goes on with a connection whose question was given up, gives it to a later question,
// and lets that fail with it, half a minute after it began. Such connections are as far apart as we are patient.
async function isThere(place) {
  for (let times = 0; times < SURE; times++) {
    const said = await ask(place.dataset.probe, PATIENCE);
    if (said !== "refuses") {
      return said === "answers";
    }
  }
  return await ask(place.dataset.silent, QUICK) === "silent";
}

function follow(place) {
  let heard = Date.now();
  let looking = false;
  document.body.addEventListener("htmx:afterOnLoad", (event) => {
    if (event.detail.xhr.status < 400) {
      heard = Date.now();
      place.hidden = true;
    }
  });
  setInterval(async () => {
    if (looking || Date.now() - heard < SILENCE || !document.getElementById("run")?.hasAttribute("hx-get")) {
      return;
    }
    place.hidden = false;
    if (!place.dataset.follow) {
      return;
    }
    looking = true;
    // Never away from an address that answers again meanwhile.
    if (await isThere(place) && Date.now() - heard >= SILENCE) {
      location.assign(place.dataset.follow);
    }
    looking = false;
  }, 1000);
}

const place = document.getElementById("follow");
if (place) {
  // It may be the answer to the form itself: loaded again, it must not be sent again.
  history.replaceState(null, "", place.dataset.here);
  follow(place);
}

// At the new address: this page was loaded from there, so the box is reached.
const proof = document.querySelector("form[data-send]");
if (proof) {
  setTimeout(() => proof.requestSubmit(proof.querySelector("[name=keep]")), Number(proof.dataset.after || 0));
}
