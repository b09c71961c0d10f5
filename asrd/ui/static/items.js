"use strict";
// Records as the timeline shows them: a call with its result, what it changed and whom it started is one item. Pure.

const PROMPTS = new Set(["prompt", "command", "agent", "queued"]);

class Timeline {
  constructor(ref, depth = 0) {
    this.ref = ref;
    this.depth = depth;
    this.items = [];
    this.next = 0;
    this.byId = new Map();
    this.bySeq = new Map();
    this.calls = new Map();
    this.links = [];
    this.turns = 0;
    this.counts = { gap: 0, loss: 0 };
  }
  // Takes records in; gives the items that were there before and are other now.
  add(records) {
    const changed = new Set();
    for (const rec of records) {
      if (rec.seq < this.next) continue;
      this.next = rec.seq + 1;
      const item = this.take(rec, changed);
      this.byId.set(rec.id, item);
      this.bySeq.set(rec.seq, item);
      if (rec.supersedes) {
        const old = this.byId.get(rec.supersedes);
        if (old && old !== item && old.rec.id === rec.supersedes) { old.superseded = true; old.minor = true; changed.add(old); }
      }
    }
    return changed;
  }
  take(rec, changed) {
    const call = rec.callId ? this.calls.get(rec.callId) : null;
    if (rec.type === "tool_result" && call) {
      if (call.result) call.more.push(call.result);
      call.result = rec;
      changed.add(call);
      return call;
    }
    if (call && ["approval", "file_change", "link"].includes(rec.type)) {
      if (rec.type === "link") { if (rec.relation === "spawned") this.child(call, rec.target, rec.evidence); else call.more.push(rec); }
      else if (rec.type === "file_change") call.changes.push(rec);
      else call.approvals.push(rec);
      call.all.push(rec);
      changed.add(call);
      return call;
    }
    const item = { rec, tl: this, depth: this.depth, kind: rec.type, minor: false, open: false, folds: new Set(), children: [], changes: [], approvals: [], more: [], all: [], at: -1, height: 0 };
    this.sort(item);
    if (rec.type === "tool_call") this.calls.set(rec.callId, item);
    if (rec.type === "gap" || rec.type === "loss") this.counts[rec.type]++;
    this.items.push(item);
    return item;
  }
  child(item, target, evidence) {
    if (!item.children.some((c) => c.target.sessionId === target.sessionId)) item.children.push({ target, evidence });
  }
  sort(item) {
    const { rec } = item;
    if (rec.type === "message") {
      const thinking = rec.content.length && rec.content.every((b) => b.type === "thinking");
      if (thinking) item.kind = "thinking";
      else if (rec.role === "assistant") item.kind = "answer";
      else if (rec.role === "user" && (!rec.origin || PROMPTS.has(rec.origin))) item.kind = "prompt";
      else if (rec.origin === "summary") item.kind = "summary";
      else { item.kind = "injected"; item.minor = true; }
    } else if (rec.type === "turn") {
      if (rec.phase === "start") { item.kind = "turn"; item.number = ++this.turns; }
      else { item.kind = "turn-end"; item.minor = rec.status === "completed" || !rec.status; }
    } else if (rec.type === "inference") item.minor = !rec.error;
    else if (rec.type === "link") { if (rec.relation === "spawned") this.child(item, rec.target, rec.evidence); }
    else if (!STORY.has(rec.type)) item.minor = true;
    if (rec.copyOf) item.copy = true;
  }
  // Where children stand that no record here names: at their call, as the tree says.
  adopt(children) {
    const changed = new Set();
    for (const one of children) {
      const call = one.parent?.callId ? this.calls.get(one.parent.callId) : null;
      const mine = one.parent && one.parent.sessionId === this.ref.sessionId;
      const known = this.items.some((i) => i.children.some((c) => c.target.sessionId === one.sessionId));
      if (call && mine && !known) { this.child(call, one, { kind: one.parent.evidence }); changed.add(call); }
    }
    return changed;
  }
}
const STORY = new Set(["session", "tool_call", "tool_result", "file_change", "compaction", "gap", "loss", "plan", "vcs", "end", "message_sent", "memory_write"]);

// Items in the order they are shown: those of a sub-agent that was opened stand below its call.
function flatten(timeline, all, out = []) {
  for (const item of timeline.items) {
    if (!item.minor || all || item.forced) out.push(item);
    for (const child of item.children) {
      if (!child.timeline) continue;
      flatten(child.timeline, all, out);
      child.foot = child.foot || { kind: "foot", child, rec: { seq: -1, type: "foot" }, tl: child.timeline, depth: child.timeline.depth, children: [], folds: new Set(), at: -1, height: 0 };
      out.push(child.foot);
    }
  }
  return out;
}

// What a call does, in a few words.
function called(rec) {
  const given = rec.input || {};
  const words = given.command ?? given.cmd ?? given.file_path ?? given.path ?? given.filePath ?? given.pattern ?? given.query ?? given.url ?? given.description ?? given.prompt ?? given.raw;
  if (Array.isArray(words)) return words.every((w) => typeof w === "string") ? words.join(" ") : JSON.stringify(words);
  if (typeof words === "string") return words;
  const text = JSON.stringify(given);
  return text === "{}" ? "" : text;
}

// A change that only the call's input tells: what was replaced, line by line.
function replaced(input) {
  if (!input) return null;
  const before = input.old_string ?? input.oldText ?? input.old_str, after = input.new_string ?? input.newText ?? input.new_str;
  if (typeof before === "string" && typeof after === "string") return [...before.split("\n").map((l) => "-" + l), ...after.split("\n").map((l) => "+" + l)].join("\n");
  const raw = typeof input.raw === "string" ? input.raw : typeof input.patch === "string" ? input.patch : null;
  return raw && /^(\*\*\* Begin Patch|diff --git|--- )/.test(raw) ? raw : null;
}

function textOf(blocks) {
  return (blocks || []).map((b) => b.text ?? b.summary ?? b.path ?? b.uri ?? `[${b.type}]`).join("\n");
}

function summaryOf(rec) {
  if (rec.type === "inference") {
    const used = Object.entries(rec.usage || {}).map(([k, v]) => `${k} ${num(v)}`).join(" · ");
    return [rec.model || "model unknown", rec.effort, rec.stopReason, used || "figures not recorded", rec.error && (rec.error.message || rec.error.code), rec.durationMs !== undefined && seconds(rec.durationMs)].filter(Boolean).join(" · ");
  }
  if (rec.type === "message") return textOf(rec.content);
  if (rec.type === "link") return `${rec.relation.replace(/_/g, " ")} ${rec.target.agent} ${rec.target.sessionId} (${rec.evidence.kind})`;
  if (rec.type === "native") return rec.nativeType;
  if (rec.type === "capture") return `${rec.profile}${rec.facet ? "." + rec.facet : ""} ${rec.state}${rec.reason ? ": " + rec.reason : ""}`;
  const rest = Object.entries(rec).filter(([k]) => !["type", "seq", "id", "at", "nativeId", "turnId", "clipped", "atSource"].includes(k));
  return rest.map(([k, v]) => `${k} ${typeof v === "object" ? JSON.stringify(v) : v}`).join(" · ");
}
