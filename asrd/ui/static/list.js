"use strict";
// A long list of which only what is seen is there. Heights are estimated, measured once seen, and kept; what is read stays where it is.

class Heights {
  // Prefix sums that change in O(log n) (Fenwick).
  constructor(values) {
    this.n = values.length;
    this.values = values;
    this.tree = new Float64Array(this.n + 1);
    for (let i = 1; i <= this.n; i++) {
      this.tree[i] += values[i - 1];
      const up = i + (i & -i);
      if (up <= this.n) this.tree[up] += this.tree[i];
    }
  }
  add(height) {
    if (this.n + 1 >= this.tree.length) {
      // Room for as many again, so that adding one by one copies each only a few times.
      const values = new Float64Array(2 * this.n + 64), tree = new Float64Array(2 * this.n + 65);
      values.set(this.values.subarray(0, this.n));
      tree.set(this.tree.subarray(0, this.n + 1));
      Object.assign(this, { values, tree });
    }
    const i = ++this.n;
    this.values[i - 1] = height;
    this.tree[i] = height + this.before(i - 1) - this.before(i - (i & -i));
  }
  before(i) {
    let sum = 0;
    for (; i > 0; i -= i & -i) sum += this.tree[i];
    return sum;
  }
  set(i, height) {
    const change = height - this.values[i];
    this.values[i] = height;
    for (let k = i + 1; k <= this.n; k += k & -k) this.tree[k] += change;
    return change;
  }
  at(offset) {
    let i = 0, left = offset;
    for (let step = 1 << Math.floor(Math.log2(Math.max(1, this.n))); step; step >>= 1)
      if (i + step <= this.n && this.tree[i + step] <= left) { i += step; left -= this.tree[i]; }
    return Math.min(i, Math.max(0, this.n - 1));
  }
}

class LongList {
  // `render(item)` gives an element; `item.height` remembers what was measured; `estimate(item)` says what to expect.
  constructor(root, { render, estimate, role, label, shown }) {
    this.root = root;
    this.render = render;
    this.estimate = estimate;
    this.shown = shown;
    this.room = el("div", { class: "room" });
    Object.assign(this, { role, name: label });
    root.append(this.room);
    this.items = [];
    this.nodes = new Map();
    this.active = -1;
    this.heights = new Heights([]);
    this.resized = new ResizeObserver((seen) => this.measured(seen));
    this.root.addEventListener("scroll", () => this.later(), { passive: true });
    this.fitted = new ResizeObserver(() => this.later());
    this.fitted.observe(root);
    this.follow = false;
  }
  later() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); });
  }
  set(items) {
    // What is at the top of the view stays there, also when items are added or left out above it.
    const end = this.atEnd();
    const top = this.items.length ? this.items[this.heights.at(this.root.scrollTop - this.top())] : null;
    const into = top ? this.root.scrollTop - this.top() - this.heights.before(this.items.indexOf(top)) : 0;
    const active = this.items[this.active];
    this.items = items;
    this.heights = new Heights(Float64Array.from(items, (item) => item.height || this.estimate(item)));
    this.active = active ? items.indexOf(active) : -1;
    const keep = new Set(items);
    for (const [item, node] of this.nodes) if (!keep.has(item)) this.drop(item, node);
    const at = top ? items.indexOf(top) : -1;
    this.size();
    if (this.follow && end) this.root.scrollTop = this.root.scrollHeight;
    else if (at > 0 && this.root.scrollTop > 0) this.root.scrollTop = this.top() + this.heights.before(at) + into;
    this.draw();
  }
  append(items) {
    // As `set` with these at the end, whatever there is before them.
    if (!items.length) return;
    const end = this.atEnd();
    for (const item of items) {
      item.at = this.items.length;
      this.items.push(item);
      this.heights.add(item.height || this.estimate(item));
    }
    this.size();
    if (this.follow && end) this.root.scrollTop = this.root.scrollHeight;
    this.later();
  }
  top() { return this.room.offsetTop; }
  atEnd() { return this.root.scrollTop + this.root.clientHeight >= this.root.scrollHeight - 8; }
  size() {
    this.room.style.height = this.heights.before(this.items.length) + "px";
    // A list of nothing is none.
    for (const [name, value] of [["role", this.role], ["aria-label", this.name]]) if (!this.items.length) this.room.removeAttribute(name); else if (!this.room.hasAttribute(name)) this.room.setAttribute(name, value);
  }
  drop(item, node) {
    this.resized.unobserve(node);
    node.remove();
    this.nodes.delete(item);
  }
  draw() {
    const from = this.root.scrollTop - this.top(), view = this.root.clientHeight;
    const first = this.heights.at(Math.max(0, from - 300));
    let last = first, at = this.heights.before(first);
    const wanted = new Set();
    let place = 0, previous = null;
    for (; last < this.items.length && at < from + view + 600; last++) {
      const item = this.items[last];
      item.at = last;
      wanted.add(item);
      let node = this.nodes.get(item);
      if (!node) {
        node = this.render(item);
        node.item = item;
        node.classList.add("row");
        node.setAttribute("tabindex", "-1");
        this.nodes.set(item, node);
        const after = previous ? previous.nextSibling : this.room.firstChild;
        this.room.insertBefore(node, after);
        this.resized.observe(node);
      }
      this.label(node, last);
      node.style.transform = `translateY(${at}px)`;
      previous = node;
      at += this.heights.values[last];
      place++;
    }
    for (const [item, node] of this.nodes) if (!wanted.has(item) && node !== document.activeElement) this.drop(item, node);
    if (this.shown) this.shown([...this.nodes.values()]);
  }
  label(node, i) {
    if (this.role === "feed") {
      node.setAttribute("aria-posinset", i + 1);
      node.setAttribute("aria-setsize", this.items.length);
    }
    const here = i === this.active;
    node.classList.toggle("active", here);
    node.setAttribute("tabindex", here || (this.active < 0 && i === 0) ? "0" : "-1");
  }
  measured(seen) {
    const top = this.root.scrollTop - this.top(), end = this.follow && this.atEnd();
    let shift = 0, changed = false;
    for (const { target } of seen) {
      const item = target.item;
      if (!target.isConnected || this.nodes.get(item) !== target) continue;
      const height = target.getBoundingClientRect().height;
      const i = this.index(item);
      if (i < 0 || Math.abs(height - this.heights.values[i]) < 0.5) continue;
      // What is measured for the first time keeps its end where it was; what was opened keeps its beginning.
      const start = this.heights.before(i);
      const above = item.height ? start + this.heights.values[i] <= top + shift : start < top + shift;
      const change = this.heights.set(i, height);
      item.height = height;
      if (above) shift += change;
      changed = true;
    }
    if (!changed) return;
    this.size();
    if (end) this.root.scrollTop = this.root.scrollHeight;
    else if (shift) this.root.scrollTop += shift;
    this.draw();
  }
  index(item) {
    if (this.items[item.at] === item) return item.at;
    const i = this.items.indexOf(item);
    if (i >= 0) item.at = i;
    return i;
  }
  again(item) {
    const node = this.nodes.get(item);
    if (!node) { item.height = 0; return; }
    const had = node === document.activeElement;
    const fresh = this.render(item);
    fresh.item = item;
    fresh.classList.add("row");
    fresh.style.transform = node.style.transform;
    this.resized.unobserve(node);
    node.replaceWith(fresh);
    this.nodes.set(item, fresh);
    this.label(fresh, this.index(item));
    this.resized.observe(fresh);
    if (had) fresh.focus({ preventScroll: true });
    if (this.shown) this.shown([fresh]);
  }
  go(i, { focus = true, middle = false } = {}) {
    if (!this.items.length) return;
    i = Math.max(0, Math.min(this.items.length - 1, i));
    this.active = i;
    for (let tries = 0; tries < 4; tries++) {
      // Drawing measures what comes into view, which may move the place that is gone to.
      const at = this.top() + this.heights.before(i), height = this.heights.values[i], view = this.root.clientHeight;
      const edge = this.edge ? this.edge() : 0;
      const want = middle ? at - Math.max(edge, (view - height) / 3) : at - edge < this.root.scrollTop ? at - edge - 8 : at + height > this.root.scrollTop + view ? Math.min(at - edge - 8, at + height - view + 8) : this.root.scrollTop;
      const was = this.root.scrollTop;
      if (Math.abs(want - was) > 1) this.root.scrollTop = want;
      this.draw();
      const node = this.nodes.get(this.items[i]);
      if (node) this.measured([...this.nodes.values()].map((target) => ({ target })));
      if (Math.abs(this.root.scrollTop - was) <= 1) break;
    }
    for (const [item, node] of this.nodes) this.label(node, this.index(item));
    const node = this.nodes.get(this.items[i]);
    if (node && focus) node.focus({ preventScroll: true });
  }
  close() {
    this.resized.disconnect();
    this.fitted.disconnect();
    if (this.waiting) cancelAnimationFrame(this.waiting);
  }
}
