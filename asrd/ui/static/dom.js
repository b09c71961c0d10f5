"use strict";
// Elements and text. Whatever a session holds becomes text nodes: no markup, link or escape sequence of it is obeyed.

function el(tag, attrs, ...children) {
  const node = tag === "svg" || el.svg.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attrs || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}
el.svg = new Set(["g", "rect", "line", "path", "text", "title"]);

function add(node, children) {
  for (const child of children.flat(9)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : inert(String(child)));
  }
}

function clear(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

// Control characters, marks that reorder text, invisible ones, lone surrogates: seen, not obeyed. As asrd/text.py has it.
const INERT = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
function inert(text) {
  return text.replace(/\r\n/g, "\n").replace(INERT, "\ufffd");
}

// ---------------------------------------------------------------- terminal output

const ESCAPE = /\u001b\[([0-9;:]*)m|\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][\s\S]*?(?:\u0007|\u001b\\|$)|\u001b[ -/]*[0-~]|\u009b[0-?]*[ -/]*[@-~]|\u001b/g;
const BASE = [[0, 0, 0], [205, 49, 49], [13, 188, 121], [229, 229, 16], [36, 114, 200], [188, 63, 188], [17, 168, 205], [229, 229, 229],
  [102, 102, 102], [241, 76, 76], [35, 209, 139], [245, 245, 67], [59, 142, 234], [214, 112, 214], [41, 184, 219], [255, 255, 255]];

// The nearest of the sixteen colours that the page has for light and dark: every text stays readable.
function nearest(r, g, b) {
  let best = 7, least = Infinity;
  BASE.forEach(([x, y, z], i) => {
    const far = (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2;
    if (far < least) { least = far; best = i; }
  });
  return best;
}

function indexed(n) {
  if (n < 16) return n;
  if (n >= 232) { const v = 8 + (n - 232) * 10; return nearest(v, v, v); }
  const k = n - 16, part = (v) => (v ? 55 + v * 40 : 0);
  return nearest(part(Math.floor(k / 36)), part(Math.floor(k / 6) % 6), part(k % 6));
}

function sgr(state, codes) {
  const given = codes.split(/[;:]/).map((c) => (c === "" ? 0 : Number(c)));
  for (let i = 0; i < given.length; i++) {
    const c = given[i];
    if (c === 0) Object.keys(state).forEach((k) => delete state[k]);
    else if (c === 1) state.bold = true;
    else if (c === 2) state.faint = true;
    else if (c === 3) state.italic = true;
    else if (c === 4) state.underlined = true;
    else if (c === 7) state.inverse = true;
    else if (c === 9) state.struck = true;
    else if (c === 22) { delete state.bold; delete state.faint; }
    else if (c === 23) delete state.italic;
    else if (c === 24) delete state.underlined;
    else if (c === 27) delete state.inverse;
    else if (c === 29) delete state.struck;
    else if (c >= 30 && c <= 37) state.fg = c - 30;
    else if (c >= 90 && c <= 97) state.fg = c - 82;
    else if (c === 39) delete state.fg;
    else if (c >= 40 && c <= 47) state.bg = c - 40;
    else if (c >= 100 && c <= 107) state.bg = c - 92;
    else if (c === 49) delete state.bg;
    else if (c === 38 || c === 48) {
      const where = c === 38 ? "fg" : "bg";
      if (given[i + 1] === 5) { state[where] = indexed(given[i + 2] & 255); i += 2; }
      else if (given[i + 1] === 2) { state[where] = nearest(given[i + 2], given[i + 3], given[i + 4]); i += 4; }
    }
  }
}

// Text as a terminal shows it: colours are kept, a line that a bare CR begins anew shows its last state, nothing else is obeyed.
function terminal(text) {
  const out = document.createDocumentFragment();
  const lines = text.replace(/\r+\n/g, "\n").split("\n").map((line) => {
    if (!line.includes("\r")) return line;
    const parts = line.split("\r").filter((p) => p !== "");
    return parts.length ? parts[parts.length - 1] : "";
  });
  const plain = lines.join("\n");
  const state = {};
  let at = 0;
  const put = (words) => {
    if (!words) return;
    const names = [];
    let { fg, bg } = state;
    if (state.inverse) names.push("inverse");
    if (fg !== undefined) names.push("f" + fg);
    if (bg !== undefined && !state.inverse) names.push("b" + bg);
    for (const k of ["bold", "faint", "italic", "underlined", "struck"]) if (state[k]) names.push(k);
    out.append(names.length ? el("span", { class: names.join(" ") }, words) : inert(words));
  };
  ESCAPE.lastIndex = 0;
  for (let found; (found = ESCAPE.exec(plain)); ) {
    put(plain.slice(at, found.index));
    at = ESCAPE.lastIndex;
    if (found[1] !== undefined) sgr(state, found[1]);
  }
  put(plain.slice(at));
  return out;
}

// ---------------------------------------------------------------- words and changes

// Fenced blocks, `code`, **bold** and headings are set off; every character stays. Links stay text.
function prose(text) {
  const out = el("div", { class: "prose" });
  text.split(/^(```[^\n]*\n[\s\S]*?(?:^```[ \t]*$|$(?![\s\S])))/m).forEach((part) => {
    if (part.startsWith("```")) {
      const body = part.replace(/^```[^\n]*\n/, "").replace(/\n?```[ \t]*$/, "");
      out.append(el("pre", { class: "code", tabindex: 0 }, body));
    } else if (part) {
      const words = el("div", { class: "words" });
      part.replace(/^\n+|\n+$/g, "").split(/(`[^`\n]+`|\*\*[^*\n]+\*\*|^#{1,6} [^\n]*)/m).forEach((bit) => {
        if (/^`[^`]+`$/.test(bit)) words.append(el("code", {}, bit.slice(1, -1)));
        else if (/^\*\*[^*]+\*\*$/.test(bit)) words.append(el("strong", {}, bit.slice(2, -2)));
        else if (/^#{1,6} /.test(bit)) words.append(el("strong", {}, bit.replace(/^#+ /, "")));
        else if (bit) words.append(inert(bit));
      });
      out.append(words);
    }
  });
  return out;
}

function diffed(text) {
  const out = el("pre", { class: "diff", tabindex: 0 });
  text.replace(/\n$/, "").split("\n").forEach((line) => {
    const kind = /^(\+\+\+|---|diff |index )/.test(line) ? "meta" : line[0] === "+" ? "plus" : line[0] === "-" ? "minus" : line.startsWith("@@") ? "hunk" : null;
    out.append(el("span", { class: kind }, line + "\n"));
  });
  return out;
}

// ---------------------------------------------------------------- numbers and times

const NUMBER = new Intl.NumberFormat("en");
function num(n) {
  return n === null || n === undefined ? "–" : NUMBER.format(n);
}
function brief(n) {
  if (n === null || n === undefined) return "–";
  if (n < 1000) return String(Math.round(n));
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (n >= size) return (n / size).toPrecision(3).replace(/\.0+$|(\.\d*?)0+$/, "$1") + unit;
}
function count(n, one, many = one + "s") {
  return `${num(n)} ${n === 1 ? one : many}`;
}
function seconds(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms > 0 && ms < 1) return "under 1 ms";
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60000) return (ms / 1000).toFixed(1) + " s";
  if (ms < 3600000) return Math.round(ms / 60000) + " min";
  return (ms / 3600000).toFixed(1) + " h";
}
function clock(at) {
  const time = at ? new Date(at) : null;
  return !time || isNaN(time) ? "" : time.toLocaleTimeString("en-GB");
}
function when(at) {
  const time = at ? new Date(at) : null;
  if (!time || isNaN(time)) return "–";
  const passed = (Date.now() - time) / 1000;
  if (passed >= 0 && passed < 60) return "now";
  if (passed >= 0 && passed < 3600) return Math.floor(passed / 60) + " min ago";
  if (passed >= 0 && passed < 86400) return Math.floor(passed / 3600) + " h ago";
  if (passed >= 0 && passed < 7 * 86400) return Math.floor(passed / 86400) + " d ago";
  return time.toLocaleDateString("sv");
}
function money(cost) {
  if (!cost) return "–";
  const amount = Number(cost.amount);
  const text = amount === 0 || amount >= 0.01 ? amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 }) : amount.toFixed(4);
  return cost.currency === "USD" ? "$" + text : text + " " + cost.currency;
}
function oneLine(text, most) {
  const flat = inert(text || "").replace(/\s+/g, " ").trim();
  return flat.length > most ? flat.slice(0, most - 1) + "…" : flat;
}
// A title on one line: what sets words off in a prompt is left out there.
function titled(text, most) {
  return oneLine((text || "").replace(/```\w*/g, " ").replace(/\*\*|`/g, ""), most) || oneLine(text, most);
}
function tail(path) {
  return (path || "").split("/").filter(Boolean).slice(-2).join("/");
}
