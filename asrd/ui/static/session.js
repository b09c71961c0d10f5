"use strict";
// One session as a timeline: what was asked, said and done, from top to bottom. It can be replayed, which runs nothing.

const NAMES = { session: "Session", prompt: "Prompt", answer: "Answer", thinking: "Thinking", injected: "Context", summary: "Summary", turn: "Turn", "turn-end": "Turn ended", tool_result: "Result", inference: "Response", usage_total: "Declared total", file_change: "File", compaction: "Compaction", gap: "Gap", loss: "Loss", link: "Link", vcs: "Version control", plan: "Plan", end: "End", config: "Setting", native: "Native record", capture: "Capture state", limit: "Limit", approval: "Approval", message_sent: "Sent", memory_write: "Memory" };
const RELATIONS = { spawned_by: "sub-agent of", spawned: "started", forked_from: "fork of", resumed_from: "resumed from", continued_from: "handed off from", observes: "observes", copies: "copies" };

function refOf(one) {
  return { agent: one.agent, sessionId: one.sessionId, namespace: one.namespace || "" };
}
function addressOf(ref) {
  return "#/s/" + [ref.agent, ref.sessionId, ref.namespace].filter(Boolean).map(encodeURIComponent).join("/");
}

class SessionView {
  constructor(app, ref) {
    Object.assign(this, { app, ref, wire: app.wire, all: false, hits: new Set(), query: "", replay: null, stops: [] });
    this.timeline = new Timeline(ref);
    this.title = el("h2", { class: "title" }, "…");
    this.state = el("span", { class: "state" });
    this.input = el("input", { type: "search", placeholder: "Search (/)", "aria-label": "Search in this session", enterkeyhint: "search" });
    this.found = el("span", { class: "found", role: "status" });
    this.more = el("button", { type: "button", class: "more", "aria-pressed": "false", title: "Every record (e)", onclick: () => this.everything() }, "All records");
    this.trouble = el("button", { type: "button", class: "trouble", hidden: true, onclick: () => this.nextTrouble() });
    this.play = el("button", { type: "button", title: "Replay (p): shows the records one after the other; runs nothing", onclick: () => this.replayed() }, "Replay");
    this.scroll = el("div", { class: "scroll" });
    this.bar = el("div", { class: "replay", role: "group", "aria-label": "Replay", hidden: true });
    this.node = el("section", { class: "session", "aria-label": "Session" },
      el("div", { class: "head" },
        el("div", { class: "line" }, app.wire.held ? null : el("a", { class: "back", href: "#/", "aria-label": "All sessions (Esc)" }, "←"), this.title, this.state),
        el("div", { class: "line tools" }, this.input, this.found, this.trouble, this.more, this.play)),
      this.scroll, this.bar);
    this.list = new LongList(this.scroll, { render: (item) => this.render(item), estimate: guess, role: "feed", label: "Timeline", shown: (nodes) => this.mark(nodes) });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); this.search(this.input.value.trim(), event.shiftKey ? -1 : 1); }
      if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); this.input.value = ""; this.search(""); this.list.go(Math.max(0, this.list.active)); }
    });
    this.scroll.addEventListener("click", (event) => this.clicked(event));
    this.tell = () => this.catchUp();
    this.wire.changed.add(this.tell);
  }

  async start() {
    const facts = this.wire.ask("session", this.ref).then((said) => this.say(said));
    await Promise.all([facts, this.wire.records(this.ref, 0, (part) => this.take(part))]);
    this.timeline.adopt(this.children || []).forEach((item) => this.list.again(item));
    this.list.follow = true;
    await this.live();
  }
  async live() {
    const stop = await this.wire.follow(this.ref, this.timeline.next, (records) => this.take(records));
    if (this.closed) { if (stop) stop(); return; }
    if (stop) this.stops.push(stop);
    this.followed = !!stop;
    this.times = this.wire.times;
  }
  async catchUp() {
    if (this.closed) return;
    this.say(await this.wire.ask("session", this.ref));
    const again = this.times !== undefined && this.times !== this.wire.times;
    if (again || !this.followed) await this.wire.records(this.ref, this.timeline.next, (part) => this.take(part));
    for (const item of this.list.items) for (const child of item.children) {
      if (!child.timeline || (child.stop && !again)) continue;
      await this.wire.records(child.timeline.ref, child.timeline.next, (part) => this.grown(child.timeline, part));
    }
    if (again) await this.live();
  }
  say({ session, links, children }) {
    if (this.closed) return;
    this.session = session;
    this.links = links;
    this.children = children;
    const words = session.title || session.prompt || session.sessionId;
    clear(this.title, titled(words, 200));
    document.title = titled(words, 60) + " – asrd";
    this.title.title = inert(words);
    clear(this.state, stateMark(session));
    const first = this.timeline.items[0];
    if (first) this.list.again(first);
  }
  take(records) {
    if (!records.length || this.closed) return;
    const known = this.timeline.items.length;
    const changed = this.timeline.add(records);
    if (this.items && !this.replay && ![...changed].some((item) => item.superseded)) this.added(this.timeline.items.slice(known));
    else this.draw();
    changed.forEach((item) => this.list.again(item));
    const { gap, loss } = this.timeline.counts;
    this.trouble.hidden = !gap && !loss;
    clear(this.trouble, [gap && count(gap, "gap"), loss && count(loss, "loss", "losses")].filter(Boolean).join(", "));
  }
  grown(timeline, records) {
    if (!records.length || this.closed) return;
    const changed = timeline.add(records);
    this.draw();
    changed.forEach((item) => this.list.again(item));
  }
  added(items) {
    // What comes at the end is added there, however long the session is.
    this.hidden += items.filter((i) => i.minor && !i.forced).length;
    this.list.append(this.all ? items : items.filter((i) => !i.minor || i.forced));
    this.sayMore();
  }
  draw() {
    this.items = flatten(this.timeline, this.all);
    if (this.replay) {
      this.replay.at = Math.min(this.replay.at, this.items.length - 1);
      this.slider.max = this.items.length - 1;
      this.list.set(this.items.slice(0, this.replay.at + 1));
    } else this.list.set(this.items);
    this.hidden = this.timeline.items.filter((i) => i.minor && !i.forced).length;
    this.sayMore();
  }
  sayMore() {
    const { hidden } = this;
    this.more.title = this.all ? "Only the story (e)" : `${num(hidden)} more records: context, settings, figures (e)`;
    this.more.setAttribute("aria-pressed", String(this.all));
    clear(this.more, "All records", this.all || !hidden ? null : el("span", { class: "plus" }, ` (+${num(hidden)})`));
  }
  everything() {
    this.all = !this.all;
    this.draw();
  }

  // ------------------------------------------------------------ rendering

  render(item) {
    const { rec } = item;
    const node = el("article", { class: `item ${item.kind}${item.superseded ? " superseded" : ""}${item.copy ? " copy" : ""}${this.hits.has(rec.seq) && item.tl === this.timeline ? " hit" : ""}`, "aria-label": `${NAMES[item.kind] || rec.type} ${rec.id || ""}` });
    if (item.depth) { node.classList.add("deep"); node.style.setProperty("--depth", Math.min(4, item.depth)); }
    if (item.kind === "foot") { add(node, [el("button", { type: "button", "data-do": "close" }, "Close sub-agent")]); return node; }
    if (rec.type === "session") this.header(node, item);
    else if (rec.type === "turn") add(node, [el("div", { class: "rule" }, item.kind === "turn" ? `Turn ${item.number}` : "Turn ended", rec.trigger && rec.trigger !== "prompt" ? ` · ${rec.trigger}` : "", rec.status ? ` · ${rec.status}` : "", el("time", {}, clock(rec.at))), rec.error ? el("p", { class: "note bad" }, rec.error.message || rec.error.code) : null]);
    else if (rec.type === "message") this.message(node, item);
    else if (rec.type === "tool_call") this.call(node, item);
    else if (rec.type === "tool_result") { add(node, [this.label(item, rec.status)]); this.result(node, item, rec); }
    else if (rec.type === "file_change") { add(node, [this.label(item, `${rec.change} ${rec.path.path}`)]); this.change(node, rec); }
    else if (rec.type === "gap" || rec.type === "loss") this.missing(node, item);
    else if (rec.type === "compaction") { add(node, [this.label(item, [rec.trigger, rec.tokensBefore !== undefined && `${num(rec.tokensBefore)} tokens before`, rec.tokensAfter !== undefined && `${num(rec.tokensAfter)} after`].filter(Boolean).join(" · ") || "history was replaced by a summary")]); if (rec.summary) add(node, [el("details", { open: item.open }, el("summary", {}, "Summary"), prose(rec.summary))]); }
    else if (rec.type === "plan") add(node, [this.label(item), el("ul", { class: "plan" }, rec.items.map((i) => el("li", { class: i.status }, el("span", { class: "tick", "aria-hidden": "true" }, { completed: "☑", in_progress: "◐", cancelled: "☒" }[i.status] || "☐"), i.text, el("span", { class: "away" }, ` (${i.status.replace("_", " ")})`))))]);
    else if (rec.type === "vcs") add(node, [this.label(item, [rec.action, rec.commit && rec.commit.slice(0, 12), rec.branch].filter(Boolean).join(" "))]);
    else add(node, [this.label(item, oneLine(summaryOf(rec), item.open ? 4000 : 300))]);
    if (item.children.length) this.childrenOf(node, item);
    if (item.open && item.kind !== "compaction") add(node, [this.raw(item)]);
    return node;
  }
  label(item, words = "") {
    const { rec } = item;
    return el("div", { class: "label" }, el("span", { class: "name" }, NAMES[item.kind] || rec.type), words ? el("span", { class: "what" }, words) : null,
      item.copy ? el("span", { class: "tag", title: `A copy of a record of ${rec.copyOf.sessionId}; it never counts` }, "copy") : null,
      item.superseded ? el("span", { class: "tag", title: "A later record states this anew" }, "superseded") : null,
      el("time", { title: rec.at || "time not recorded" }, clock(rec.at)), el("button", { type: "button", class: "id", "data-do": "open", "aria-expanded": String(item.open), title: "The record as it stands (Enter)" }, rec.id));
  }
  header(node, item) {
    const s = this.session, { rec } = item;
    if (item.tl !== this.timeline || !s) { add(node, [this.label(item, `${rec.agent.name} ${rec.agent.version || ""} ${rec.sessionId}`)]); return; }
    const u = s.usage;
    const pairs = [["Harness", `${s.agent} ${s.version || ""}`], ["Model", s.model], ["Folder", s.cwd], ["Branch", s.branch], ["Session", s.sessionId],
      ["Started", s.startedAt && new Date(s.startedAt).toLocaleString("sv")], ["Last", s.lastAt && new Date(s.lastAt).toLocaleString("sv")],
      ["Turns", num(s.turns)], ["Calls", `${num(s.calls)}${s.failedCalls ? `, ${num(s.failedCalls)} failed` : ""}`], ["Edits", num(s.edits)],
      ["Input", `${num(u?.inputTotal)}${s.lowerBound || u?.lowerBound ? " at least" : ""}`], ["of it cached", num(u?.cacheRead)], ["Output", num(u?.output)], ["Records", num(s.records)]];
    add(node, [this.label(item), el("dl", { class: "facts" }, pairs.filter(([, v]) => v).map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v)))),
      s.lowerBound ? el("p", { class: "note" }, `Figures are a lower bound: ${s.lowerBound}.`) : null,
      s.notRecorded ? el("p", { class: "note" }, `Not recorded: ${s.notRecorded}.`) : null,
      s.contentLevel !== "full" ? el("p", { class: "note" }, `Contents: ${s.contentLevel}.`) : null]);
    const related = (this.links || []).filter((l) => l.state === "edge" || l.state === "unresolved").map((l) => {
      const own = l.from && l.from.sessionId === s.sessionId && l.from.agent === s.agent;
      const other = own ? l.to || (l.target.sessionId ? l.target : null) : l.from || (l.target.sessionId ? l.target : null);
      const here = [l.from, l.to].some((side) => side && side.sessionId === s.sessionId && side.agent === s.agent);
      if (!here || !other || other.sessionId === s.sessionId) return null;
      const known = own ? l.to : l.from;
      const spawn = l.relation === "spawned" || l.relation === "spawned_by";
      const words = spawn ? (own ? "sub-agent of" : "started") : own ? RELATIONS[l.relation] || l.relation : `${l.relation.replace(/_/g, " ")} this:`;
      return { key: words + other.sessionId, node: el("li", {}, words, " ", known && !this.wire.held ? el("a", { href: addressOf(other) }, `${other.agent} ${other.sessionId.slice(0, 13)}`) : `${other.agent || ""} ${other.sessionId || ""}`, known ? "" : " (not recorded)") };
    }).filter(Boolean);
    const once = [...new Map(related.map((r) => [r.key, r.node])).values()];
    if (once.length) add(node, [el("ul", { class: "related", "aria-label": "Related sessions" }, once)]);
  }
  message(node, item) {
    const { rec } = item;
    const who = item.kind === "injected" ? `${rec.role}${rec.origin ? " · " + rec.origin : ""}` : item.kind === "prompt" && rec.origin && rec.origin !== "prompt" ? rec.origin : "";
    add(node, [this.label(item, item.kind === "thinking" ? "" : who)]);
    rec.content.forEach((block, i) => {
      if (block.type === "thinking") {
        const text = block.text ?? block.summary;
        if (!text) { add(node, [el("p", { class: "note" }, "Thinking that the harness keeps hidden.")]); return; }
        add(node, [this.fold(item, "t" + i, `${block.text ? "Thought" : "Summary of thought"}: ${oneLine(text, 90)}`, () => prose(text))]);
      } else if (block.type === "text") {
        if (item.minor) add(node, [this.fold(item, "m" + i, oneLine(block.text, 140), () => prose(block.text))]);
        else add(node, [prose(block.text)]);
      } else this.block(node, block);
    });
    if (rec.clipped) this.cut(node);
  }
  block(node, block) {
    if (block.type === "image") {
      const kind = block.mediaType || "";
      if (block.data && /^image\/(png|jpeg|gif|webp)$/.test(kind) && /^[A-Za-z0-9+/=\s]+$/.test(block.data) && block.data.length > 2000) add(node, [el("img", { src: `data:${kind};base64,${block.data}`, alt: block.path ? inert(block.path) : "Picture in the session" })]);
      else add(node, [el("p", { class: "note" }, `Picture ${block.path || kind}${block.bytes ? `, ${num(block.bytes)} bytes` : ""}`)]);
    } else if (block.type === "text") add(node, [prose(block.text)]);
    else add(node, [el("p", { class: "note" }, `${block.type} ${block.path || block.uri || ""}`), block.text ? prose(block.text) : null]);
  }
  fold(item, key, words, body) {
    const open = item.folds.has(key);
    const node = el("details", { open, class: "fold" }, el("summary", {}, words), open ? body() : null);
    node.addEventListener("toggle", () => {
      if (node.open === item.folds.has(key)) return;
      if (node.open) { item.folds.add(key); node.append(body()); } else { item.folds.delete(key); node.lastChild.remove(); }
    });
    return node;
  }
  call(node, item) {
    const { rec, result } = item;
    const code = result?.exec?.exitCode;
    const bad = result && (["failed", "denied", "cancelled"].includes(result.status) || (code !== undefined && code !== 0));
    if (bad) node.classList.add("bad");
    const status = !result ? "no result recorded" : [result.status !== "completed" || code === undefined ? result.status : null, code !== undefined ? `exit ${code}` : null, result.exec?.signal, result.exec?.timedOut && "timed out", seconds(result.exec?.durationMs)].filter(Boolean).join(" · ");
    const what = called(rec);
    add(node, [el("div", { class: "label" }, el("span", { class: "name" }, rec.name), rec.kind === "execute" ? null : el("span", { class: "what" }, oneLine(what, 300)),
      item.copy ? el("span", { class: "tag" }, "copy") : null,
      el("span", { class: `outcome${bad ? " bad" : result ? "" : " open"}` }, status), el("time", { title: rec.at || "time not recorded" }, clock(rec.at)), el("button", { type: "button", class: "id", "data-do": "open", "aria-expanded": String(item.open), title: "The record as it stands (Enter)" }, rec.id))]);
    if (rec.kind === "execute" && what) add(node, [el("pre", { class: "command", tabindex: 0 }, el("span", { class: "mark", "aria-hidden": "true" }, "$ "), what)]);
    for (const one of item.approvals) add(node, [el("p", { class: "note" }, one.phase === "requested" ? "Asked for approval" : `${(one.decision || "decided").replace("_", " ")} by ${one.by || "someone not recorded"}${one.policy ? ` (${one.policy})` : ""}`)]);
    const changed = item.changes.some((c) => c.diff);
    if (!changed) { const text = replaced(rec.input); if (text) add(node, [diffed(text)]); }
    for (const one of item.changes) { add(node, [el("p", { class: "file" }, `${one.change} ${one.path.path}`, one.evidence && one.evidence !== "observed" ? el("span", { class: "tag" }, one.evidence) : null)]); this.change(node, one); }
    if (result) this.result(node, item, result);
  }
  change(node, rec) {
    if (rec.diff) add(node, [diffed(rec.diff)]);
    if (rec.clipped) this.cut(node);
  }
  result(node, item, rec) {
    const ran = rec.exec || {};
    const own = textOf((rec.content || []).filter((b) => b.type === "text"));
    const text = own || [ran.stdout, ran.stderr].filter(Boolean).join("\n");
    for (const block of (rec.content || []).filter((b) => b.type !== "text")) this.block(node, block);
    if (text.trim()) {
      const lines = text.replace(/\s+$/, "").split("\n");
      const long = lines.length > 14 && !item.folds.has("out");
      add(node, [el("pre", { class: "out", tabindex: 0 }, terminal(long ? lines.slice(0, 12).join("\n") : text.replace(/\s+$/, "")))]);
      if (long) add(node, [el("button", { type: "button", "data-do": "out" }, `${num(lines.length - 12)} more lines`)]);
    }
    if (rec.truncated) add(node, [el("p", { class: "note" }, `The harness itself left out ${rec.truncated.bytes === undefined ? "some" : num(rec.truncated.bytes) + " bytes"} here.`)]);
    if (rec.clipped) this.cut(node);
  }
  cut(node) {
    add(node, [el("button", { type: "button", "data-do": "whole" }, "Show all of it")]);
  }
  missing(node, item) {
    const { rec } = item;
    const words = rec.type === "gap" ? `Something is missing here: ${rec.reason}` : `Something here could not be converted: ${rec.reason}`;
    const span = rec.span ? `${rec.span.source} [${num(rec.span.start)}, ${num(rec.span.end)})` : "";
    add(node, [this.label(item, words), el("p", { class: "note" }, [rec.bytes !== undefined && `${num(rec.bytes)} bytes`, span, rec.sha256 && `SHA-256 ${rec.sha256.slice(0, 16)}…`].filter(Boolean).join(" · ")), rec.preview ? el("pre", { class: "out", tabindex: 0 }, rec.preview) : null]);
  }
  childrenOf(node, item) {
    for (const child of item.children) {
      const t = child.target;
      add(node, [el("p", { class: "child" }, el("button", { type: "button", "data-do": "child", "data-id": t.sessionId, "aria-expanded": String(!!child.timeline) }, child.timeline ? "Close sub-agent" : "Open sub-agent here"), el("span", {}, `${t.agent} ${t.sessionId.slice(0, 13)}`), child.trouble ? el("span", { class: "note" }, child.trouble) : null, this.wire.held ? null : el("a", { href: addressOf(t) }, "on its own"))]);
    }
  }
  raw(item) {
    const records = item.whole || standing(item);
    return el("div", { class: "raw" }, records.map((r) => el("pre", { tabindex: 0, "aria-label": `Record ${r.id}` }, JSON.stringify(r, null, 2))));
  }

  // ------------------------------------------------------------ doing

  clicked(event) {
    const row = event.target.closest(".row");
    if (!row || !row.item) return;
    const i = this.list.index(row.item), what = event.target.closest("[data-do]");
    if (i >= 0 && i !== this.list.active && !String(getSelection())) { this.list.active = i; this.list.draw(); }
    if (what) this.act(row.item, what.dataset.do, what.dataset.id);
  }
  async act(item, what, id) {
    if (item.kind === "foot") return this.shut(item.child);
    if (what === "open") { item.open = !item.open; if (item.open) { await this.wholeOf(item); item.whole = await this.asWritten(item); } }
    if (what === "out") item.folds.add("out");
    if (what === "whole") { await this.wholeOf(item); item.folds.add("out"); }
    if (what === "child") await this.child(item, item.children.find((c) => c.target.sessionId === id));
    this.list.again(item);
    const at = this.list.index(item);
    if (at >= 0) this.list.go(at);
  }
  async wholeOf(item) {
    const fetched = async (rec) => (rec && rec.clipped ? this.wire.ask("record", { session: item.tl.ref, seq: rec.seq }) : rec);
    item.rec = await fetched(item.rec);
    item.result = await fetched(item.result);
    for (const list of [item.changes, item.all]) for (let i = 0; i < list.length; i++) list[i] = await fetched(list[i]);
  }
  // The records behind an item with all that stands in them, vendor data too (one file leaves that out).
  asWritten(item) {
    return Promise.all(standing(item).map((rec) => this.wire.ask("record", { session: item.tl.ref, seq: rec.seq })));
  }
  async child(item, child) {
    if (!child) return;
    if (child.timeline) return this.shut(child, item);
    const ref = refOf(child.target);
    const timeline = new Timeline(ref, item.depth + 1);
    child.owner = item;
    try {
      await this.wire.records(ref, 0, (part) => timeline.add(part));
      timeline.adopt(this.children || []);
      child.timeline = timeline;
      child.trouble = null;
      if (!this.wire.held) {
        const stop = await this.wire.follow(ref, timeline.next, (records) => this.grown(timeline, records));
        if (stop) { child.stop = stop; this.stops.push(stop); }
      }
    } catch (error) { child.trouble = error.message; }
    this.draw();
  }
  shut(child, item = child.owner) {
    child.stop?.();
    child.timeline = null;
    child.stop = null;
    this.draw();
    this.list.again(item);
    this.list.go(this.list.index(item));
  }
  nextTrouble() {
    const from = this.list.active;
    const bad = (i) => ["gap", "loss"].includes(i.kind);
    let at = this.list.items.findIndex((item, i) => i > from && bad(item));
    if (at < 0) at = this.list.items.findIndex(bad);
    if (at >= 0) this.list.go(at, { middle: true });
  }

  // ------------------------------------------------------------ searching

  async search(text, step = 1) {
    if (text === this.query && text) return this.hit(step);
    this.query = text;
    this.hits = new Set();
    clear(this.found, text ? "…" : "");
    if (text) {
      const { seqs, more } = await this.wire.ask("search", { session: this.ref, text });
      if (this.query !== text) return;
      this.hits = new Set(seqs);
      this.places = [...new Set(seqs.map((seq) => this.timeline.bySeq.get(seq)).filter(Boolean))];
      this.place = -1;
      this.moreHits = more;
    }
    for (const item of [...this.list.nodes.keys()]) this.list.again(item);
    if (!text) return clear(this.found);
    if (!this.places.length) return clear(this.found, "not found");
    this.hit(step);
  }
  hit(step) {
    if (!this.places?.length) return;
    const n = this.places.length;
    this.place = (this.place + step + n) % n;
    const item = this.places[this.place];
    clear(this.found, `${num(this.place + 1)} of ${num(n)}${this.moreHits ? "+" : ""}`);
    if (this.list.index(item) < 0) { item.forced = true; if (this.replay) this.replayed(); this.draw(); }
    this.list.go(this.list.index(item), { middle: true, focus: document.activeElement !== this.input });
  }
  mark() {
    if (!CSS.highlights) return;
    if (!this.query) { CSS.highlights.delete("found"); return; }
    const ranges = [], wanted = this.query.toLowerCase();
    for (const node of this.list.nodes.values()) {
      const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
      for (let text; (text = walk.nextNode()); ) {
        const low = text.data.toLowerCase();
        for (let at = low.indexOf(wanted); at >= 0 && ranges.length < 500; at = low.indexOf(wanted, at + wanted.length)) {
          const range = new Range();
          range.setStart(text, at);
          range.setEnd(text, Math.min(text.length, at + wanted.length));
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }

  // ------------------------------------------------------------ replaying

  replayed() {
    if (this.replay) {
      clearTimeout(this.replay.timer);
      this.replay = null;
      this.bar.hidden = true;
      this.play.setAttribute("aria-pressed", "false");
      this.list.follow = true;
      return this.draw();
    }
    this.replay = { at: 0, speed: 1, playing: false, timer: 0 };
    this.play.setAttribute("aria-pressed", "true");
    this.slider = el("input", { type: "range", min: 0, max: this.items.length - 1, value: 0, "aria-label": "Place in the session", oninput: () => { this.pause(); this.seek(Number(this.slider.value)); } });
    this.runner = el("button", { type: "button", onclick: () => (this.replay.playing ? this.pause() : this.run()) }, "▶");
    this.spot = el("span", { class: "spot" });
    const pace = el("select", { "aria-label": "Speed", onchange: () => { this.replay.speed = Number(pace.value); } }, [1, 4, 16, 64].map((n) => el("option", { value: n }, `${n}×`)));
    clear(this.bar, this.runner, el("button", { type: "button", "aria-label": "One back", onclick: () => this.stepped(-1) }, "‹"), el("button", { type: "button", "aria-label": "One on", onclick: () => this.stepped(1) }, "›"), this.slider, this.spot, pace, el("button", { type: "button", "aria-label": "End replay", onclick: () => this.replayed() }, "✕"));
    this.bar.hidden = false;
    this.list.follow = false;
    this.seek(0);
    this.run();
  }
  run() {
    const { replay } = this;
    if (replay.at >= this.items.length - 1) this.seek(0);
    replay.playing = true;
    clear(this.runner, "⏸").setAttribute("aria-label", "Pause (space)");
    const next = () => {
      if (!this.replay || !replay.playing) return;
      if (replay.at >= this.items.length - 1) return this.pause();
      this.seek(replay.at + 1);
      replay.timer = setTimeout(next, this.gapTo(replay.at + 1));
    };
    replay.timer = setTimeout(next, this.gapTo(replay.at + 1));
  }
  gapTo(i) {
    // As long as it took, at most 2 s (a person waits for no build twice).
    const one = Date.parse(this.items[i - 1]?.rec.at), two = Date.parse(this.items[i]?.rec.at);
    const passed = isNaN(one) || isNaN(two) ? 300 : Math.max(0, two - one);
    return Math.max(40, Math.min(2000, passed) / this.replay.speed);
  }
  pause() {
    this.replay.playing = false;
    clearTimeout(this.replay.timer);
    clear(this.runner, "▶").setAttribute("aria-label", "Play (space)");
  }
  stepped(by) { this.pause(); this.seek(this.replay.at + by); }
  seek(at) {
    this.replay.at = Math.max(0, Math.min(this.items.length - 1, at));
    this.slider.value = this.replay.at;
    clear(this.spot, `${num(this.replay.at + 1)} / ${num(this.items.length)} ${clock(this.items[this.replay.at].rec.at)}`);
    this.list.set(this.items.slice(0, this.replay.at + 1));
    this.list.go(this.replay.at, { focus: false });
  }

  key(event) {
    const { list } = this, { key } = event;
    const item = list.items[list.active];
    if (key === "j" || key === "ArrowDown") list.go(list.active + 1);
    else if (key === "k" || key === "ArrowUp") list.go(list.active - 1);
    else if (key === "g" || key === "Home") list.go(0);
    else if (key === "G" || key === "End") list.go(list.items.length - 1);
    else if (key === "J") this.toPrompt(1);
    else if (key === "K") this.toPrompt(-1);
    else if (key === "/") { this.input.focus(); this.input.select(); }
    else if (key === "n") this.hit(1);
    else if (key === "N") this.hit(-1);
    else if (key === "e") this.everything();
    else if (key === "!") this.nextTrouble();
    else if (key === "p") this.replayed();
    else if (key === " " && this.replay) { if (this.replay.playing) this.pause(); else this.run(); }
    else if (key === "Enter" && item) this.enter(item);
    else if (key === "o" && item) this.act(item, "open");
    else if (key === "Escape") { if (this.replay) this.replayed(); else if (item?.open) this.act(item, "open"); else if (!this.wire.held) location.hash = "#/"; }
    else return false;
    return true;
  }
  enter(item) {
    // Opens what there is to open: the sub-agent, the folded thought, else the record itself.
    if (item.kind === "foot") return this.act(item, "close");
    if (item.children.length) return this.act(item, "child", item.children[0].target.sessionId);
    const fold = this.list.nodes.get(item)?.querySelector("details");
    if (fold) { fold.open = !fold.open; return null; }
    return this.act(item, "open");
  }
  toPrompt(step) {
    for (let i = this.list.active + step; i >= 0 && i < this.list.items.length; i += step) if (this.list.items[i].kind === "prompt") return this.list.go(i);
    return null;
  }
  close() {
    this.closed = true;
    if (this.replay) clearTimeout(this.replay.timer);
    this.wire.changed.delete(this.tell);
    this.stops.forEach((stop) => stop());
    this.list.close();
    CSS.highlights?.delete("found");
  }
}

function standing(item) {
  return [item.rec, item.result, ...item.all, ...item.more].filter(Boolean);
}

// How high an item will likely be, before it was seen.
function guess(item) {
  const { rec } = item;
  if (item.kind === "turn" || item.kind === "turn-end") return 44;
  if (item.kind === "session") return 200;
  if (item.kind === "answer" || item.kind === "prompt") return 56 + 22 * Math.ceil(textOf(rec.content).length / 90);
  if (item.kind === "tool_call") return 70 + (item.result ? Math.min(13, textOf(item.result.content).split("\n").length) * 19 : 0);
  return 48;
}

function stateMark(s) {
  // An open turn of a session that was killed, or that waits for a person, stays open: only what changed lately works.
  const working = s.state === "open" && Date.now() - Date.parse(s.lastAt) < 600000;
  const words = working ? "working" : s.state === "open" ? "open turn" : s.state;
  return el("span", { class: `mark ${working ? "working" : s.state}` }, el("span", { class: "dot", "aria-hidden": "true" }), words);
}
