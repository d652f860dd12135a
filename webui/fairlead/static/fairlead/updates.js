// The upload of a bundle: sent as it is, with a bar that shows what has gone, and a way to stop.
"use strict";

const upload = document.getElementById("upload");

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function start(form) {
  const file = document.getElementById("bundle");
  const button = document.getElementById("send");
  const stop = document.getElementById("stop");
  const sending = document.getElementById("sending");
  const bar = document.getElementById("sent");
  const words = document.getElementById("sent-words");
  const error = document.getElementById("upload-error");

  function show(busy, message) {
    sending.hidden = !busy;
    stop.hidden = !busy;
    button.disabled = file.disabled = busy;
    error.hidden = !message;
    error.textContent = message;
  }

  function answered(request) {
    let answer = {};
    try {
      answer = JSON.parse(request.responseText);
    } catch {
      // a page for people, from something in between
    }
    if (request.status === 200 && answer.next) {
      window.location.assign(answer.next);
    } else if (request.status === 200) {
      window.location.reload(); // logged out meanwhile: the page that comes says so
    } else {
      show(false, answer.message || `The box refused the file (${request.status}).`);
      file.focus();
    }
  }

  function send() {
    const one = file.files[0];
    if (!one) return;
    if (one.size > Number(form.dataset.limit)) {
      show(false, `This file has ${megabytes(one.size)}; a bundle for this box has ${megabytes(Number(form.dataset.limit))} at most.`);
      return;
    }
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("X-CSRFToken", form.elements.csrfmiddlewaretoken.value);
    request.upload.addEventListener("progress", (event) => {
      bar.value = event.total ? (100 * event.loaded) / event.total : 0;
      words.textContent = event.loaded < event.total
        ? `${megabytes(event.loaded)} of ${megabytes(event.total)}`
        : "All is sent; the box checks it.";
    });
    request.addEventListener("load", () => answered(request));
    request.addEventListener("error", () => show(false, "The connection to the box broke. Nothing was installed; try again."));
    request.addEventListener("abort", () => show(false, "Stopped. Nothing was installed."));
    stop.onclick = () => request.abort();
    bar.value = 0;
    words.textContent = `0 MB of ${megabytes(one.size)}`;
    show(true, "");
    request.send(one);
    stop.focus();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
}

if (upload) start(upload);
