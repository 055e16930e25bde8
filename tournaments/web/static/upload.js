"use strict";
// Uploads a folder, or files, that were dropped or chosen, and shows how far it is.  Without it the form sends
// one file by itself.
(() => {
  const form = document.querySelector("form[data-upload]");
  if (!form) return;
  const drop = form.querySelector("[data-drop]"), chosen = form.querySelector("input[type=file]");
  const sending = form.querySelector("[data-sending]"), bar = sending.querySelector("progress");
  const sent = form.querySelector("[data-sent]"), refused = form.querySelector("[data-refused]");
  const button = form.querySelector("button:not([type=button])");
  // What no bot needs and can be large; the server leaves out the rest.
  const SKIPPED = new Set([".git", ".hg", ".svn", ".venv", "__pycache__", "__MACOSX"]);
  const MOST_FILES = 5000; // beyond that it is no bot's folder, and reading it takes long

  function refuse(sentence) {
    sending.hidden = true;
    button.disabled = false;
    refused.textContent = sentence;
    refused.hidden = false;
  }

  // Files as [path, File].

  function entriesOf(reader) { // gives them in portions, the last of which is empty
    return new Promise((resolve, reject) => {
      const all = [];
      const more = () => reader.readEntries((some) => {
        if (!some.length) return resolve(all);
        all.push(...some);
        return more();
      }, reject);
      more();
    });
  }

  async function gather(entry, path, files) {
    if (SKIPPED.has(entry.name)) return;
    if (files.length > MOST_FILES) throw new Error(`There are more than ${MOST_FILES} files in it.`);
    const own = path ? `${path}/${entry.name}` : entry.name;
    if (entry.isFile) {
      files.push([own, await new Promise((resolve, reject) => entry.file(resolve, reject))]);
    } else {
      for (const inner of await entriesOf(entry.createReader())) await gather(inner, own, files);
    }
  }

  function send(body, what) {
    refused.hidden = true;
    sending.hidden = false;
    button.disabled = true;
    bar.removeAttribute("value");
    sent.textContent = `Sending ${what}`;
    const request = new XMLHttpRequest(); // fetch does not report how much was sent
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.upload.addEventListener("progress", (event) => {
      if (!event.lengthComputable) return;
      bar.value = 100 * event.loaded / event.total;
      sent.textContent = event.loaded < event.total ? `Sending ${what}` : "Sent; it is being unpacked";
    });
    request.addEventListener("error", () => refuse(
      "The upload was interrupted, and nothing was submitted. "
        + "Try again; if you changed the file, choose it again first."));
    request.addEventListener("load", () => {
      let answer = {};
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        const page = new DOMParser().parseFromString(request.responseText, "text/html");
        answer.error = page.querySelector("main p")?.textContent;
      }
      if (answer.path) location.assign(answer.path);
      else refuse(answer.error || `The upload was refused (${request.status}): load this page again.`);
    });
    request.send(body);
  }

  function sendFiles(files) {
    if (!files.length) return refuse("There is no file in it.");
    const body = new FormData();
    body.append("csrf", form.elements.csrf.value);
    const [[path, file]] = files;
    if (files.length === 1 && !path.includes("/")) {
      body.append("file", file, path);
      return send(body, path);
    }
    for (const [inner, one] of files) body.append("folder", one, inner);
    return send(body, `${files.length} files`);
  }

  form.addEventListener("submit", (event) => {
    const [file] = chosen.files;
    if (!file) return;
    event.preventDefault();
    sendFiles([[file.name, file]]);
  });

  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  drop.addEventListener("dragleave", (event) => {
    if (!drop.contains(event.relatedTarget)) drop.classList.remove("over");
  });
  drop.addEventListener("drop", async (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    // All of it must be asked for before the first wait: the list is empty afterwards.
    const items = [...event.dataTransfer.items].map((item) => [item.webkitGetAsEntry(), item.getAsFile()]);
    const files = [];
    try {
      for (const [entry, file] of items) { // what comes from no disk has no entry
        if (entry) await gather(entry, "", files);
        else if (file) files.push([file.name, file]);
      }
    } catch (error) {
      refuse(`It cannot be read: ${error.message}`);
      return;
    }
    sendFiles(files);
  });

  const folder = document.createElement("input");
  folder.type = "file";
  folder.webkitdirectory = true;
  folder.addEventListener("change", () => {
    const files = [...folder.files].map((file) => [file.webkitRelativePath || file.name, file]);
    sendFiles(files.filter(([path]) => !path.split("/").some((part) => SKIPPED.has(part))));
  });
  form.querySelector("[data-choose-folder]").addEventListener("click", () => {
    folder.value = ""; // otherwise choosing the same folder again fires no "change" event
    folder.click();
  });
  for (const element of form.querySelectorAll(".script-only")) element.hidden = false;
})();
