// SPDX-License-Identifier: Apache-2.0
// Takes in what the page's server sends, changing only what is new: what has the focus, is open or
// scrolled stays so, and while text is selected, nothing changes.
"use strict";
const main = document.querySelector("main");
const status = document.querySelector("#status");
let sent = null;

function say(text) {
  if (status.textContent !== text) status.textContent = text;
}

function isSelected() {
  const selection = document.getSelection();
  return !selection.isCollapsed && selection.containsNode(main, true);
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null;
}

function isSame(node, made) {
  return node.nodeName === made.nodeName && keyOf(node) === keyOf(made);
}

function change(node, made) {
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (node.data !== made.data) node.data = made.data;
    return;
  }
  if (node.isEqualNode(made)) return;
  for (const name of node.getAttributeNames()) {
    if (name !== "open" && !made.hasAttribute(name)) node.removeAttribute(name);
  }
  for (const { name, value } of made.attributes) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  changeChildren(node, made);
}

function changeChildren(node, made) {
  let next = node.firstChild;
  for (const child of [...made.childNodes]) {
    let same = next;
    if (keyOf(child) !== null) {
      while (same !== null && !isSame(same, child)) same = same.nextSibling;
    }
    if (same === null || !isSame(same, child)) {
      node.insertBefore(child, next);
      continue;
    }
    while (next !== same) next = removed(next);
    change(same, child);
    next = same.nextSibling;
  }
  while (next !== null) next = removed(next);
}

function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

function show() {
  if (sent === null) return;
  if (isSelected()) {
    say("waits while text is selected");
    return;
  }
  const made = document.createElement("main");
  made.innerHTML = sent;
  sent = null;
  changeChildren(main, made);
  say("live");
}

const source = new EventSource("events");
source.onmessage = (event) => {
  sent = JSON.parse(event.data);
  show();
};
source.onerror = () => say("no connection");
document.addEventListener("selectionchange", show);
