"use strict";
// All sessions, the lineage tree, usage and cost, and what keys do.

class SessionsView {
  constructor(app) {
    Object.assign(this, { app, wire: app.wire, text: app.filter || "", all: false, sessions: [] });
    this.input = el("input", { type: "search", placeholder: "Filter (/)", "aria-label": "Filter sessions", value: this.text });
    this.count = el("span", { class: "found", role: "status" });
    this.more = el("button", { type: "button", class: "more", "aria-pressed": "false", title: "Sub-agents too (e)", onclick: () => this.everything() }, "Sub-agents");
    this.scroll = el("div", { class: "scroll" });
    this.node = el("section", { class: "sessions", "aria-label": "Sessions" }, el("div", { class: "head" }, el("h2", { class: "away" }, "Sessions"), el("div", { class: "line tools" }, this.input, this.count, this.more)), this.scroll);
    this.list = new LongList(this.scroll, { render: (item) => this.render(item), estimate: () => 66, role: "list", label: "Sessions" });
    this.items = new Map();
    this.input.addEventListener("input", () => { this.text = app.filter = this.input.value; this.draw(); });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); this.input.value = this.text = app.filter = ""; this.draw(); this.list.go(0); }
      if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); this.list.go(0); }
    });
    this.tell = () => this.load(400);
    this.wire.changed.add(this.tell);
  }
  async start() {
    document.title = "Sessions – asrd";
    await this.load(200);
    if (this.sessions.length >= 200) await this.load();
  }
  async load(limit) {
    if (this.loading || this.closed) return;
    this.loading = true;
    try {
      const { sessions } = await this.wire.ask("sessions.list", limit ? { limit } : {});
      if (this.closed) return;
      const fresh = new Set(sessions.map(keyOf));
      this.sessions = [...sessions, ...this.sessions.filter((s) => !fresh.has(keyOf(s)))];
      for (const s of sessions) {
        const item = this.items.get(keyOf(s));
        if (!item) this.items.set(keyOf(s), { s, at: -1, height: 0 });
        else if (item.s.records !== s.records || item.s.state !== s.state) { item.s = s; this.list.again(item); }
      }
      this.draw();
    } finally { this.loading = false; }
  }
  draw() {
    const words = this.text.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = this.sessions.filter((s) => {
      if (!this.all && !words.length && s.parent && ["spawned_by", "spawned"].includes(s.parent.relation)) return false;
      const text = [s.title, s.prompt, s.agent, s.sessionId, s.cwd, s.branch, s.model, s.state].join(" ").toLowerCase();
      return words.every((w) => text.includes(w));
    });
    const hidden = words.length ? 0 : this.sessions.length - shown.length;
    clear(this.count, count(shown.length, "session"));
    clear(this.more, "Sub-agents", this.all || !hidden ? null : el("span", { class: "plus" }, ` (+${num(hidden)})`)).setAttribute("aria-pressed", String(this.all));
    this.list.set(shown.map((s) => this.items.get(keyOf(s))));
    if (!this.sessions.length) clear(this.list.room, el("p", { class: "empty" }, "No session is recorded yet. `asrd sync` records; `asrd run` keeps recording."));
  }
  everything() { this.all = !this.all; this.draw(); }
  render({ s }) {
    const u = s.usage || {};
    const sub = s.parent && ["spawned_by", "spawned"].includes(s.parent.relation);
    const words = titled(s.title || s.prompt || s.sessionId, 200);
    return el("div", { role: "listitem", class: "item one" }, el("a", { href: addressOf(s), tabindex: "-1" },
      el("span", { class: "what" }, sub ? el("span", { class: "tag" }, "sub-agent") : null, words),
      el("span", { class: "under" }, stateMark(s), el("span", { class: "harness" }, s.agent), s.cwd ? el("span", { class: "cwd", title: inert(s.cwd) }, tail(s.cwd)) : null, s.branch ? el("span", { class: "branch" }, s.branch) : null,
        el("span", {}, `${brief(u.inputTotal)} in · ${brief(u.output)} out`), el("span", {}, `${count(s.calls, "call")}${s.failedCalls ? `, ${num(s.failedCalls)} failed` : ""}`),
        s.gaps || s.losses ? el("span", { class: "tag bad" }, [s.gaps && count(s.gaps, "gap"), s.losses && count(s.losses, "loss", "losses")].filter(Boolean).join(", ")) : null,
        el("time", { title: s.lastAt || "" }, when(s.lastAt)))));
  }
  key(event) {
    const { list } = this, { key } = event;
    if (key === "j" || key === "ArrowDown") list.go(list.active + 1);
    else if (key === "k" || key === "ArrowUp") list.go(list.active - 1);
    else if (key === "g" || key === "Home") list.go(0);
    else if (key === "G" || key === "End") list.go(list.items.length - 1);
    else if (key === "/") { this.input.focus(); this.input.select(); }
    else if (key === "e") this.everything();
    else if (key === "Enter" && list.items[list.active]) location.hash = addressOf(list.items[list.active].s);
    else return false;
    return true;
  }
  close() { this.closed = true; this.wire.changed.delete(this.tell); this.list.close(); }
}
function keyOf(s) { return JSON.stringify([s.agent, s.sessionId, s.namespace || ""]); }

// ---------------------------------------------------------------- lineage

const SOME = 40;

class TreeView {
  constructor(app) {
    Object.assign(this, { app, wire: app.wire });
    this.node = el("section", { class: "tree", "aria-label": "Lineage" });
    this.body = el("div", { class: "scroll plain" }, el("p", { class: "empty" }, "…"));
    add(this.node, [this.body]);
  }
  async start() {
    document.title = "Tree – asrd";
    const { roots, possible, refused } = await this.wire.ask("tree", {});
    const grown = roots.filter((r) => r.children.length || r.unresolvedParent);
    const alone = roots.length - grown.length;
    const list = el("ul", { role: "tree", "aria-label": "Sessions below those they come from" }, grown.slice(0, SOME).map((r) => this.branch(r, 1)));
    clear(this.body, el("h2", {}, "Lineage"), grown.length ? list : el("p", { class: "empty" }, "No session here comes from another."), 
      alone ? el("p", { class: "note" }, `${count(alone, "session")} ${alone === 1 ? "stands" : "stand"} alone.`) : null, grown.length > 300 ? el("p", { class: "note" }, `${num(grown.length - 300)} older trees are not shown; \`asrd tree --all\` shows them.`) : null,
      [["Possible", possible], ["Refused", refused]].map(([name, those]) => those.length ? [el("h3", {}, name), el("ul", { class: "doubts" }, those.map((d) => el("li", {}, `${d.child?.sessionId || "–"} ${d.relation} ${d.parent?.sessionId || "–"} (${d.evidence}): ${d.why}`)))] : null));
    this.nodes = [...this.body.querySelectorAll("[role=treeitem]")];
    if (this.nodes[0]) this.nodes[0].tabIndex = 0;
    this.at = -1;
    // The rest frame by frame: no frame waits for all of it.
    for (let i = SOME; i < Math.min(300, grown.length); i += SOME) {
      await new Promise(requestAnimationFrame);
      if (this.closed) return;
      const more = grown.slice(i, Math.min(300, i + SOME)).map((r) => this.branch(r, 1));
      list.append(...more);
      for (const one of more) this.nodes.push(one, ...one.querySelectorAll("[role=treeitem]"));
    }
  }
  branch(node, level) {
    const own = node.own, below = node.descendants;
    const relation = { spawned_by: "sub-agent", spawned: "sub-agent", forked_from: "fork", resumed_from: "resumed", continued_from: "handoff", observes: "observer" }[node.relation] || node.relation;
    return el("li", { role: "treeitem", tabindex: "-1", "aria-level": level, "aria-expanded": node.children.length ? "true" : null, "data-href": addressOf(node) },
      el("div", { class: "leaf", onclick: () => { location.hash = addressOf(node); } }, relation ? el("span", { class: `tag ${node.relation}` }, relation) : null, el("span", { class: "what" }, titled(node.title || node.sessionId, 160)),
        el("span", { class: "under" }, stateMark(node), el("span", { class: "harness" }, node.agent), el("span", {}, `${brief(own.inputTotal)} in · ${brief(own.output)} out`), below.requests ? el("span", {}, `below: ${brief(below.inputTotal)} in · ${brief(below.output)} out`) : null, el("time", {}, when(node.lastAt))),
        node.unresolvedParent ? el("span", { class: "note" }, `from ${node.unresolvedParent}, which is not recorded`) : null),
      node.children.length ? el("ul", { role: "group" }, node.children.map((c) => this.branch(c, level + 1))) : null);
  }
  move(to) {
    const seen = this.nodes.filter((n) => n.getClientRects().length);
    const here = Math.max(-1, seen.indexOf(this.nodes[this.at]));
    const node = seen[Math.max(0, Math.min(seen.length - 1, to(here, seen)))];
    if (!node) return;
    this.nodes.forEach((n) => { n.tabIndex = -1; });
    this.at = this.nodes.indexOf(node);
    node.tabIndex = 0;
    node.focus();
  }
  key(event) {
    const { key } = event, node = this.nodes?.[this.at];
    if (!this.nodes) return false;
    if (key === "j" || key === "ArrowDown") this.move((i) => i + 1);
    else if (key === "k" || key === "ArrowUp") this.move((i) => i - 1);
    else if (key === "g" || key === "Home") this.move(() => 0);
    else if (key === "G" || key === "End") this.move((_, seen) => seen.length - 1);
    else if ((key === "h" || key === "ArrowLeft" || key === "l" || key === "ArrowRight") && node?.hasAttribute("aria-expanded")) node.setAttribute("aria-expanded", String(key === "l" || key === "ArrowRight"));
    else if (key === "Enter" && node) location.hash = node.dataset.href;
    else if (key === "Escape") location.hash = "#/";
    else return false;
    return true;
  }
  close() { this.closed = true; }
}

// ---------------------------------------------------------------- usage and cost

const SPANS = [["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["", "All"]];

class UsageView {
  constructor(app) {
    Object.assign(this, { app, wire: app.wire });
    this.span = el("select", { "aria-label": "How far back", onchange: () => this.load() }, SPANS.map(([v, words]) => el("option", { value: v, selected: v === (app.span ?? "30") }, words)));
    this.harness = el("select", { "aria-label": "Harness", onchange: () => this.load() }, el("option", { value: "" }, "every harness"));
    this.body = el("div", { class: "scroll plain" }, el("p", { class: "empty" }, "…"));
    this.node = el("section", { class: "usage", "aria-label": "Usage" }, el("div", { class: "head" }, el("div", { class: "line tools" }, el("h2", { class: "title" }, "Usage"), this.span, this.harness)), this.body);
  }
  async start() {
    document.title = "Usage – asrd";
    this.sized = new ResizeObserver(() => this.draw());
    this.sized.observe(this.body);
    await this.load();
  }
  async load() {
    this.app.span = this.span.value;
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const asked = { timezone: zone && zone !== "UTC" ? zone : undefined, harness: this.harness.value || undefined };
    if (this.span.value) {
      const from = new Date();
      from.setDate(from.getDate() - Number(this.span.value) + 1);
      asked.since = from.toLocaleDateString("sv");
    }
    const figures = await Promise.all(["daily", "model", "harness", "project"].map((by) => this.wire.ask("money", { ...asked, by })));
    if (this.closed) return;
    this.figures = figures;
    this.wide = 0;
    const harness = figures[2];
    if (this.harness.options.length === 1) for (const row of harness.rows) if (row.harness) this.harness.append(el("option", { value: row.harness }, row.harness));
    this.draw();
  }
  draw() {
    if (!this.figures || this.wide === this.body.clientWidth) return;
    this.wide = this.body.clientWidth;
    const [day, model, harness, project] = this.figures;
    const { total } = day;
    const source = total.cost.sourceEstimate;
    const facts = [["Responses", num(total.requests)], ["Input", brief(total.inputTotal)], ["of it cached", brief(total.cacheRead)], ["Output", brief(total.output)], ["List estimate", money(total.cost.listEstimate)], ...source.map((c) => ["Source estimate", money(c)])];
    const days = day.rows.filter((r) => r.day);
    const wide = Math.min(980, this.wide - (innerWidth < 640 ? 20 : 32)) - 30;
    clear(this.body,
      el("dl", { class: "facts big" }, facts.map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v)))),
      total.lowerBound ? el("p", { class: "note" }, `At least: ${num(total.unmeasuredRequests)} responses are known whose figures no file holds.`) : null,
      days.length ? [
        chart("Input tokens by day", wide, days, [["uncached", "input"], ["cache write", "cacheWrite"], ["cache read", "cacheRead"]].map(([name, k], i) => ({ name, of: (r) => r[k] || 0, color: i })), brief),
        chart("Output tokens by day", wide, days, [{ name: "output", of: (r) => r.output || 0, color: 3 }], brief),
        days.some((r) => r.cost.listEstimate || r.cost.sourceEstimate.length) ? chart("Cost by day, US dollars", wide, days, [{ name: "list estimate", of: (r) => Number(r.cost.listEstimate?.amount || 0), color: 4 }, { name: "source estimate", of: (r) => Number(r.cost.sourceEstimate.find((c) => c.currency === "USD")?.amount || 0), color: 5 }], (v) => "$" + (v >= 100 ? Math.round(v) : v >= 0.02 || !v ? v.toFixed(2) : v.toFixed(4)), true) : null,
      ] : el("p", { class: "empty" }, "Nothing was used in this time."),
      table("By day", "Day", [...day.rows].reverse(), (r) => r.day || "time not recorded"), table("By model", "Model", model.rows, (r) => r.model || "unknown"), table("By harness", "Harness", harness.rows, (r) => r.harness || "unknown"), table("By project", "Project", project.rows, (r) => r.project || "unknown"),
      el("p", { class: "note" }, day.prices ? `List estimate: ${day.prices.package} ${day.prices.version}, prices as on the day of each response. Source estimate: as harnesses write it. Neither is what was charged; they are of different responses and not added.` : "No price list is installed: only what harnesses estimate themselves is shown."),
      total.cost.unpriced.map((u) => el("p", { class: "note" }, `Unpriced: ${num(u.requests)} (${u.why}).`)));
  }
  key(event) {
    if (event.key === "Escape") location.hash = "#/";
    else if (event.key === "j") this.body.scrollBy(0, 80);
    else if (event.key === "k") this.body.scrollBy(0, -80);
    else return false;
    return true;
  }
  close() { this.closed = true; this.sized?.disconnect(); }
}

// Bars, one a day, days without any left as gaps: stacked, or `beside` each other where they do not add. The table says the same in numbers.
function chart(title, wide, days, parts, words, beside = false) {
  const first = Date.parse(days[0].day), count = Math.round((Date.parse(days[days.length - 1].day) - first) / 86400000) + 1;
  const high = 160, left = 52, low = 22, step = (wide - left) / Math.max(count, 7), bar = Math.max(1, Math.min(40, step * 0.72));
  const most = Math.max(1e-9, ...days.map((r) => (beside ? Math.max(...parts.map((p) => p.of(r))) : parts.reduce((sum, p) => sum + p.of(r), 0))));
  const y = (v) => (high - low - 8) * (v / most);
  const svg = el("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `${title}: ${days.length} days, at most ${words(most)}. The table below has the numbers.` });
  for (const share of [0, 0.5, 1]) {
    const at = high - low - y(most * share);
    svg.append(el("line", { x1: left, x2: wide, y1: at, y2: at, class: "grid" }), el("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, words(most * share)));
  }
  for (const row of days) {
    const i = Math.round((Date.parse(row.day) - first) / 86400000);
    let base = high - low;
    const group = el("g", {}, el("title", {}, `${row.day}: ${parts.map((p) => `${p.name} ${words(p.of(row))}`).join(", ")}`));
    for (const [k, part] of parts.entries()) {
      const tall = y(part.of(row)), thin = beside ? bar / parts.length : bar;
      base = beside ? high - low - tall : base - tall;
      if (tall > 0) group.append(el("rect", { x: left + i * step + (step - bar) / 2 + (beside ? k * thin : 0), y: base, width: thin, height: Math.max(0.5, tall), class: "c" + part.color }));
    }
    svg.append(group);
  }
  const labels = Math.min(count, Math.max(2, Math.floor(wide / 110)));
  for (let k = 0; k < labels; k++) {
    const i = labels === 1 ? 0 : Math.round((k * (count - 1)) / (labels - 1));
    const day = new Date(first + i * 86400000).toISOString().slice(count > 360 ? 0 : 5, 10);
    svg.append(el("text", { x: left + i * step + step / 2, y: high - 6, "text-anchor": "middle" }, day));
  }
  return el("figure", {}, el("figcaption", {}, title, parts.length > 1 ? parts.map((p) => el("span", { class: "key" }, el("i", { class: "c" + p.color, "aria-hidden": "true" }), p.name)) : null), svg);
}

function table(title, head, rows, name) {
  if (!rows.length) return null;
  const weight = (r) => (r.inputTotal || 0) + (r.output || 0);
  const most = Math.max(1, ...rows.map(weight));
  const shown = (head === "Day" ? rows : [...rows].sort((a, b) => weight(b) - weight(a))).slice(0, 40);
  const priced = rows.some((r) => r.cost.listEstimate || r.cost.sourceEstimate.length);
  const cost = (r) => [r.cost.listEstimate && money(r.cost.listEstimate), ...r.cost.sourceEstimate.map((c) => `${money(c)} source`)].filter(Boolean).join(", ") || "–";
  return el("div", { class: "figures", tabindex: 0, role: "region", "aria-label": title }, el("table", {}, el("caption", {}, title), el("thead", {}, el("tr", {}, [head, "", "Responses", "Input", "Cached", "Output", ...(priced ? ["Cost"] : [])].map((h, i) => i === 1 ? el("td", { class: "share" }) : el("th", { scope: "col" }, h)))),
    el("tbody", {}, shown.map((r) => el("tr", {}, el("th", { scope: "row" }, name(r)), el("td", { class: "share", "aria-hidden": "true" }, el("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none" }, el("rect", { width: Math.max(0.5, (100 * weight(r)) / most), height: 8, class: "c0" }))), [num(r.requests), num(r.inputTotal), num(r.cacheRead), num(r.output), ...(priced ? [cost(r)] : [])].map((v) => el("td", {}, v)))))), rows.length > shown.length ? el("p", { class: "note" }, `${num(rows.length - shown.length)} more.`) : null);
}

// ---------------------------------------------------------------- keys

const KEYS = [["j k ↓ ↑", "next, previous"], ["J K", "next, previous prompt"], ["g G", "first, last"], ["Enter", "open: the session, the sub-agent, the thought, the record"], ["o", "the record as it stands"], ["Esc", "close, back"], ["/", "search, filter"], ["n N", "next, previous place found"], ["e", "everything: every record, sub-agents too"], ["!", "next gap or loss"], ["p, space", "replay, pause"], ["s r u", "sessions, tree, usage"], ["t", "light or dark"], ["?", "these keys"]];
function help(dialog) {
  clear(dialog, el("h2", {}, "Keys"), el("dl", { class: "keys" }, KEYS.map(([k, what]) => el("div", {}, el("dt", {}, k.split(" ").map((one) => el("kbd", {}, one.replace(",", "")))), el("dd", {}, what)))), el("form", { method: "dialog" }, el("button", {}, "Close")));
  dialog.showModal();
}
