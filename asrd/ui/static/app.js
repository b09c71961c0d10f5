"use strict";
// Which view is shown, keys, light and dark.

class App {
  constructor() {
    const held = document.getElementById("held");
    this.wire = held ? new Held(JSON.parse(held.textContent)) : new Wire();
    this.main = document.getElementById("view");
    this.nav = document.getElementById("nav");
    this.light = document.getElementById("live");
    if (!held) add(this.nav, [["#/", "Sessions"], ["#/tree", "Tree"], ["#/usage", "Usage"]].map(([href, words]) => el("a", { href }, words)));
    else {
      const n = Object.values(this.wire.data.removed).reduce((a, b) => a + b, 0);
      clear(this.light, this.wire.data.redaction === "off" ? "not redacted" : `${count(n, "secret")} removed`);
    }
    this.wire.state.add(() => this.say());
    addEventListener("hashchange", () => this.show());
    document.addEventListener("keydown", (event) => this.key(event));
    document.getElementById("theme").addEventListener("click", () => this.theme());
    document.getElementById("keys").addEventListener("click", () => help(document.getElementById("help")));
    try { const kept = localStorage.getItem("asrd-theme"); if (kept) document.documentElement.style.colorScheme = kept; } catch { /* a file may keep nothing */ }
    this.show();
    if (!held) { this.say(); this.wire.changed.add(() => this.say()); }
  }
  async say() {
    if (!this.wire.up) return clear(this.light, this.wire.lost ? el("span", { class: "tag bad" }, "not connected") : null);
    const { daemon } = await this.wire.ask("totals").catch(() => ({ daemon: false }));
    return clear(this.light, daemon ? el("span", { class: "mark working" }, el("span", { class: "dot", "aria-hidden": "true" }), "live") : el("span", { title: "No daemon records: `asrd run`" }, "not live"));
  }
  async show() {
    const [, where = "", ...rest] = location.hash.split("/");
    this.view?.close();
    let view;
    if (this.wire.held) view = new SessionView(this, refOf(this.wire.data.sessions[0].session));
    else if (where === "s" && rest.length >= 2) { const [agent, sessionId, namespace] = rest.map(decodeURIComponent); view = new SessionView(this, { agent, sessionId, namespace: namespace || "" }); }
    else if (where === "tree") view = new TreeView(this);
    else if (where === "usage") view = new UsageView(this);
    else view = new SessionsView(this);
    this.view = view;
    for (const link of this.nav.children) {
      const here = link.getAttribute("href") === "#/" + (["tree", "usage"].includes(where) ? where : "");
      if (here) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
    clear(this.main, view.node);
    try { await view.start(); } catch (error) { if (this.view === view) (view.node.querySelector(".head") || view.node).append(el("p", { class: "note bad", role: "alert" }, error.message)); }
  }
  theme() {
    const root = document.documentElement;
    const dark = (root.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    root.style.colorScheme = dark ? "light" : "dark";
    try { localStorage.setItem("asrd-theme", root.style.colorScheme); } catch { /* as above */ }
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const at = event.target;
    if (at.matches("input:not([type=range]), select, textarea") || document.querySelector("dialog[open]")) return;
    if (["Enter", " "].includes(event.key) && at.matches("button, summary, a")) return;
    if (at.matches("input[type=range]") && event.key.startsWith("Arrow")) return;
    const own = { "?": () => help(document.getElementById("help")), t: () => this.theme(), s: "#/", r: "#/tree", u: "#/usage" }[event.key];
    if (typeof own === "function") own();
    else if (own && !this.wire.held) location.hash = own;
    else if (!this.view?.key(event)) return;
    event.preventDefault();
  }
}

const app = new App();
