"use strict";
// Where the answers come from: the server over a WebSocket, or what this file holds.

class Wire {
  constructor() {
    this.next = 1;
    this.asked = new Map();
    this.followed = new Map();
    this.changed = new Set();
    this.state = new Set();
    this.up = false;
    this.times = 0; // how often it connected: what was followed before is not any more
    this.open();
  }
  open() {
    this.socket = new WebSocket(`ws://${location.host}/live`);
    this.ready = new Promise((done) => { this.socket.onopen = () => { this.up = true; this.times++; this.wait = 500; this.say(); done(); }; });
    this.socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    this.socket.onclose = () => {
      this.up = false;
      this.lost = true;
      for (const one of this.asked.values()) one.no(new Error("The server is gone. Start `asrd ui` again."));
      this.asked.clear();
      this.followed.clear();
      this.say();
      this.wait = Math.min(10000, (this.wait || 500) * 2);
      setTimeout(() => { this.open(); this.ready.then(() => this.changed.forEach((tell) => tell(null))); }, this.wait);
    };
  }
  say() { this.state.forEach((tell) => tell(this.up)); }
  receive(told) {
    if (told.changed) return this.changed.forEach((tell) => tell(told.changed));
    if (told.follow) return this.followed.get(told.follow)?.(told.records);
    const one = this.asked.get(told.id);
    if (!one) return;
    if (told.part) return one.part?.(told.part);
    this.asked.delete(told.id);
    if (told.error !== undefined) one.no(new Error(told.error));
    else one.yes(told.result);
  }
  ask(method, params = {}, part = null, before = null) {
    return this.ready.then(() => new Promise((yes, no) => {
      const id = this.next++;
      if (before) before(id);
      this.asked.set(id, { yes, no, part });
      this.socket.send(JSON.stringify({ id, method, params }));
    }));
  }
  records(session, from, part) { return this.ask("records", { session, from }, part); }
  async follow(session, from, tell) {
    let id = 0;
    const answer = await this.ask("follow", { session, from }, null, (given) => { id = given; this.followed.set(id, tell); });
    if (!answer.live) { this.followed.delete(id); return null; }
    return () => { this.followed.delete(id); if (this.up) this.ask("unfollow", { follow: id }).catch(() => {}); };
  }
}

class Held {
  // The answers of a page that is one file.
  constructor(data) {
    this.data = data;
    this.changed = new Set();
    this.state = new Set();
    this.held = true;
  }
  find(ref) {
    const found = this.data.sessions.find(({ session: s }) => s.agent === ref.agent && s.sessionId === ref.sessionId && (s.namespace || "") === (ref.namespace || ""));
    if (!found) throw new Error("That session is not in this file.");
    return found;
  }
  async ask(method, params = {}) {
    if (method === "session") return this.find(params);
    if (method === "record") return this.find(params.session).records.find((r) => r.seq === params.seq);
    if (method === "search") {
      const text = params.text.toLowerCase();
      return { seqs: this.find(params.session).records.filter((r) => JSON.stringify(r).toLowerCase().includes(JSON.stringify(text).slice(1, -1))).map((r) => r.seq), more: false };
    }
    throw new Error("This file does not hold that.");
  }
  async records(session, from, part) { part(this.find(session).records.filter((r) => r.seq >= from)); }
  async follow() { return null; }
}
