// Signing in, and which page is shown.

import {failure, h, route} from "./dom.js";
import {editor} from "./pages/editor.js";
import {lineage} from "./pages/lineage.js";
import {queries, query} from "./pages/queries.js";
import {rejected} from "./pages/rejected.js";
import {relation, relations} from "./pages/relations.js";
import {entity, store, stores} from "./pages/stores.js";
import {Samples} from "./samples.js";
import {basic, bearer, kept, onRefused, signIn, signOut} from "./session.js";

const PARTS = [["stores", "Stores"], ["relations", "Relations"], ["queries", "Queries"], ["lineage", "Lineage"],
  ["rejected", "Rejected"], ["sql", "SQL"]];
const main = document.getElementById("main");
const status = document.getElementById("status");
let shownPage = new AbortController();
let samples = null;

// The page of an address: how many parts it has says which of a kind.
function pageOf([part, ...names]) {
  const found = {
    stores: [stores, store, entity][names.length],
    relations: {0: relations, 3: relation}[names.length],
    queries: [queries, query][names.length],
    lineage: names.length ? undefined : lineage,
    rejected: names.length ? undefined : rejected,
    sql: names.length ? undefined : editor,
  }[part];
  const sampled = [queries, query, lineage].includes(found) ? [samples] : [];
  return found && ((place, signal) => found(place, signal, ...sampled, ...names));
}

function address() {
  try {
    return location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return [""];
  }
}

async function show({focus}) {
  shownPage.abort();
  const {signal} = shownPage = new AbortController();
  const found = address()[0] ? address() : ["stores"];
  const place = h("div");
  main.replaceChildren(place);
  for (const link of document.querySelectorAll("#nav a"))
    if (link.getAttribute("href") === route(found[0])) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  const page = pageOf(found);
  document.title = `${[...found].reverse().join(" – ")} – mvserver console`;
  main.setAttribute("aria-busy", "true");
  try {
    const work = page ? page(place, signal) : Promise.reject(new Error("there is no such page"));
    if (focus) (place.querySelector("h1") ?? main).scrollIntoView({block: "nearest"});
    if (focus) main.focus();
    await work;
  } catch (error) {
    if (!signal.aborted && error.status !== 401) place.append(failure(error));
  } finally {
    if (!signal.aborted) main.removeAttribute("aria-busy");
  }
}

function begin(role) {
  document.getElementById("who").textContent = role;
  document.getElementById("nav").replaceChildren(
    h("ul", {}, PARTS.map(([part, title]) => h("li", {}, h("a", {href: route(part)}, title)))));
  document.getElementById("top").hidden = false;
  samples = new Samples(words => { if (status.textContent !== words) status.textContent = words; });
  samples.run();
  addEventListener("hashchange", () => show({focus: true}));
  onRefused(leave);
  show({focus: false});
}

function leave() {
  signOut();
  location.reload(); // with it goes whatever was read
}

function askWho() {
  const role = h("input", {id: "role", name: "username", autocomplete: "username", value: "postgres", required: true});
  const password = h("input", {id: "password", type: "password", autocomplete: "current-password"});
  const token = h("input", {id: "token", type: "password", autocomplete: "off"});
  const keep = h("input", {type: "checkbox", id: "keep"});
  const withPassword = h("div", {}, h("label", {for: "role"}, "Role"), role, h("label", {for: "password"}, "Password"), password);
  const withToken = h("div", {hidden: true}, h("label", {for: "token"}, "API token"), token);
  const choice = (id, title, checked, act) => h("label", {},
    h("input", {type: "radio", name: "way", id, checked, change: act}), ` ${title}`);
  const choose = byToken => {
    withPassword.hidden = byToken;
    withToken.hidden = !byToken;
    role.required = !byToken;
    token.required = byToken;
  };
  const problems = h("div");
  const go = h("button", {type: "submit", class: "first"}, "Sign in");
  const form = h("form", {class: "sign-in", submit: async event => {
    event.preventDefault();
    go.disabled = true;
    problems.replaceChildren();
    try {
      const header = withToken.hidden ? basic(role.value, password.value) : bearer(token.value.trim());
      begin(await signIn(header, keep.checked));
    } catch (error) {
      problems.replaceChildren(failure(error));
      go.disabled = false;
    }
  }},
  h("fieldset", {}, h("legend", {}, "Who are you?"),
    h("div", {class: "row"}, choice("by-password", "Role and password", true, () => choose(false)),
      choice("by-token", "API token", false, () => choose(true))),
    withPassword, withToken, h("label", {class: "check"}, keep, " Stay signed in until this tab is closed")),
  problems, go);
  main.replaceChildren(h("h1", {}, "mvserver console"), form);
}

async function open() {
  document.getElementById("sign-out").addEventListener("click", leave);
  document.getElementById("skip").addEventListener("click", event => {
    event.preventDefault(); // the address is the page's
    main.focus();
  });
  const header = kept();
  if (header) {
    try {
      begin(await signIn(header, true));
      return;
    } catch (error) {
      askWho();
      main.append(failure(error));
      return;
    }
  }
  askWho();
}

open();
