"""Takes secrets out of text: known key shapes, assignments to names that hold secrets, and what only looks random.

Invariants
    - Pure: the same text and mode give the same result, and what was removed is counted by kind.
    - Redacting twice changes nothing more.
    - `off` changes nothing. `default` removes secrets. `strict` also removes e-mail addresses and home folders.

Where the rules come from
    The shapes are those their issuers document, as two public rule sets list them: gitleaks (`config/gitleaks.toml`)
    and GitHub's secret scanning patterns. They are written anew here. detect-secrets was looked at and not used: its
    last release (1.5.0) is of May 2024, it is untyped, and it needs an HTTP client.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

Mode = Literal["strict", "default", "off"]
MODES: tuple[Mode, ...] = ("strict", "default", "off")


class Redacted(Struct, frozen=True):
    """Text without its secrets, and how many were removed by kind (`github-token`, `assigned-secret`, …)."""

    text: str
    removed: dict[str, int]


def redact(text: str, mode: Mode = "default", known: Iterable[str] = ()) -> Redacted:
    """The text without its secrets.

    `known`: values that are secret because of where they came from (variables of the environment); each is removed
    wherever it stands when it has at least 8 characters.
    """
    redactor = Redactor(mode, known)
    return Redacted(redactor(text), dict(redactor.removed))


class Redactor:
    """Redacts many texts and counts over all of them (`removed`, by kind)."""

    def __init__(self, mode: Mode = "default", known: Iterable[str] = ()) -> None:
        self.mode: Mode = mode
        self.removed: Counter[str] = Counter()
        self._known = sorted({k for k in known if len(k) >= SHORTEST_KNOWN}, key=lambda k: (-len(k), k))

    def __call__(self, text: str) -> str:
        """The text without its secrets."""
        if self.mode == "off" or not text:
            return text
        for value in self._known:
            if value in text:
                self.removed["known-value"] += text.count(value)
                text = text.replace(value, mark("known-value"))
        hit = {number for word, numbers in _RULES_BY_WORD if word in text for number in numbers}
        for number in sorted(hit):
            text = self._apply(RULES[number], text)
        text = self._assigned(text)
        text = OPTION.sub(self._option, text)
        text = RANDOM.sub(self._random, text)
        if self.mode == "strict":
            text = EMAIL.sub(self._email, text)
            text = HOME.sub(self._home, text)
        return text

    def _apply(self, rule: Rule, text: str) -> str:
        def replace(found: re.Match[str]) -> str:
            secret = found.group("secret")
            if secret.startswith((MARK, "$", "<", "{", "%")) or MARK in secret or len(set(secret)) <= 2:
                return found.group(0)
            self.removed[rule.kind] += 1
            start, end = found.span("secret")
            begin = found.start()
            whole = found.group(0)
            return whole[: start - begin] + mark(rule.kind) + whole[end - begin :]

        return rule.shape.sub(replace, text)

    def _assigned(self, text: str) -> str:
        parts: list[str] = []
        done = at = 0
        while found := ASSIGNED.search(text, at):
            which = "quoted" if found["quoted"] else "bare"
            kind = holds_secret(found["name"])
            if kind is None or not worth_hiding(found[which], kind, which == "quoted"):
                at = found.end("name")  # its value may be a name itself: `use this: TOKEN=…`
                continue
            start, at = found.span(which)
            self.removed["assigned-secret"] += 1
            parts += [text[done:start], mark("assigned-secret")]
            done = at
        return "".join([*parts, text[done:]]) if parts else text

    def _option(self, found: re.Match[str]) -> str:
        value = found.group("value").strip("\"'")
        if placeholder(value) or value.startswith(MARK) or value.startswith("-") or len(value) < SHORTEST_PASSWORD:
            return found.group(0)
        self.removed["assigned-secret"] += 1
        return found.group(0).replace(value, mark("assigned-secret"))

    def _random(self, found: re.Match[str]) -> str:
        if not looks_random(found.group(0)):
            return found.group(0)
        self.removed["high-entropy"] += 1
        return mark("high-entropy")

    def _email(self, found: re.Match[str]) -> str:
        if found.group(0).lower().startswith(("git@", "noreply@")):
            return found.group(0)
        self.removed["e-mail"] += 1
        return mark("e-mail")

    def _home(self, found: re.Match[str]) -> str:
        self.removed["home-folder"] += 1
        return "~"


# ---------------------------------------------------------------- marks

MARK = "[removed:"


def mark(kind: str) -> str:
    """What stands in place of a secret."""
    return f"{MARK} {kind}]"


# ---------------------------------------------------------------- known shapes


class Rule(Struct, frozen=True):
    """One shape. `words`: one of them is in every text it can be found in. The group `secret` is what is removed."""

    kind: str
    words: tuple[str, ...]
    shape: re.Pattern[str]


def _rule(kind: str, words: str, shape: str, flags: int = 0) -> Rule:
    if "(?P<secret>" not in shape:
        shape = rf"(?<![A-Za-z0-9])(?P<secret>{shape})(?![A-Za-z0-9])"
    return Rule(kind, tuple(words.split()), re.compile(shape, flags | re.ASCII))


RULES: tuple[Rule, ...] = (
    # A key block that is cut off at the end of the text is removed to the end.
    _rule(
        "private-key",
        "PRIVATE",
        r"(?P<secret>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z))",
    ),
    _rule("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,60}"),
    _rule("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]{10,})?"),
    # Userinfo of any URI: databases, brokers, git remotes, proxies.
    _rule("uri-password", "://", r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@\"'<>]{0,100}:(?P<secret>[^\s/@\"'<>]{3,200})@"),
    _rule("uri-token", "://", r"https?://(?P<secret>[A-Za-z0-9_-]{20,200})@[A-Za-z0-9]"),
    _rule("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    _rule("openrouter-key", "sk-or-", r"sk-or-v\d-[A-Za-z0-9]{32,}"),
    _rule("openai-key", "sk-", r"sk-(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{20,}"),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    _rule("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{40,}"),
    _rule("gitlab-token", "gl", r"gl(?:pat|dt|rt|ptt|cbt|ft|oas|soat|imt|agent)-[A-Za-z0-9_.-]{20,}"),
    _rule("aws-access-key", "AKIA ASIA ABIA ACCA A3T", r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z2-7]{16}"),
    _rule("slack-token", "xox xapp- xwfp-", r"(?:xox[abeoprs]|xapp|xwfp)(?:[.-][A-Za-z0-9]+){2,}"),
    _rule(
        "slack-webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?P<secret>(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,})",
    ),
    _rule("discord-webhook", "discord", r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{10,}/[A-Za-z0-9_-]{30,})"),
    _rule("google-key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    _rule("google-oauth", "ya29. GOCSPX-", r"(?:ya29\.[A-Za-z0-9_.-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})"),
    _rule("stripe-key", "_live_ _test_ _prod_", r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    _rule("stripe-webhook", "whsec_", r"whsec_[A-Za-z0-9+/=]{20,}"),
    _rule("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{30,}"),
    _rule("mailgun-key", "key-", r"key-[a-f0-9]{32}"),
    _rule("mailchimp-key", "-us", r"[a-f0-9]{32}-us\d{1,2}"),
    _rule("twilio-key", "SK", r"SK[a-f0-9]{32}"),
    _rule("npm-token", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    _rule("pypi-token", "pypi-", r"pypi-AgE[A-Za-z0-9_-]{40,}"),
    _rule("rubygems-key", "rubygems_", r"rubygems_[a-f0-9]{40,}"),
    _rule("huggingface-token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _rule("docker-token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    _rule("digitalocean-token", "_v1_", r"do[opr]_v1_[a-f0-9]{60,}"),
    _rule("telegram-token", ":", r"(?<!\d)(?P<secret>\d{8,10}:A[A-Za-z0-9_-]{34})(?![A-Za-z0-9_-])"),
    _rule("discord-token", ".", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"),
    _rule("databricks-token", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?"),
    _rule("shopify-token", "shp", r"shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{30,}"),
    _rule("linear-key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    _rule("notion-token", "ntn_ secret_", r"(?:ntn_|secret_)[A-Za-z0-9]{40,}"),
    _rule("atlassian-token", "ATATT3 ATCTT3 ATBB", r"(?:ATATT3|ATCTT3)[A-Za-z0-9_=-]{40,}|ATBB[A-Za-z0-9]{28,}"),
    _rule("azure-storage-key", "AccountKey", r"AccountKey\s*=\s*(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"),
    _rule("azure-sas", "sig=", r"[?&]sig=(?P<secret>[A-Za-z0-9%+/=_-]{20,})"),
    _rule("azure-client-secret", "Q~", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    _rule("xai-key", "xai-", r"xai-[A-Za-z0-9]{40,}"),
    _rule("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    _rule("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{32,}"),
    _rule("replicate-token", "r8_", r"r8_[A-Za-z0-9]{30,}"),
    _rule("figma-token", "fig", r"fig(?:d|ur|oh)_[A-Za-z0-9_-]{30,}"),
    _rule("vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    _rule("terraform-token", "atlasv1", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    _rule("grafana-token", "gl", r"gl(?:sa|c)_[A-Za-z0-9+/=_-]{30,}"),
    _rule("newrelic-key", "NRAK NRII NRJS NRRA", r"NR(?:AK|II|JS|RA)-?[A-Za-z0-9_-]{20,}"),
    _rule("planetscale-token", "pscale_", r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.=-]{30,}"),
    _rule("supabase-token", "sbp_ sb_secret_", r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,})"),
    _rule("sentry-token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    _rule("1password-token", "ops_", r"ops_eyJ[A-Za-z0-9+/=_-]{100,}"),
    _rule("postman-key", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _rule("doppler-token", "dp.", r"dp\.(?:pt|st|ct|scim|audit)\.[A-Za-z0-9_.-]{30,}"),
    _rule("fly-token", "FlyV1 fo1_", r"(?:fo1_[A-Za-z0-9_-]{40,}|FlyV1 fm\d[A-Za-z]?_[A-Za-z0-9+/=,_-]{40,})"),
    # HTTP headers, in any case and with the quotes of a curl command or of JSON around them.
    _rule(
        "authorization-header",
        "uthorization UTHORIZATION",
        r"authorization[\"'\\]{0,3}\s*[:=,]\s*[\"'\\]{0,3}(?:basic|bearer|token|apikey|negotiate|digest)?\s*(?P<secret>[A-Za-z0-9._~+/=-]{8,})",
        re.IGNORECASE,
    ),
    _rule(
        "bearer-token",
        "earer BEARER",
        r"\bbearer\s+(?P<secret>(?=[A-Za-z._~+/=-]*\d)[A-Za-z0-9._~+/=-]{16,})",
        re.IGNORECASE,
    ),
    _rule(
        "cookie",
        "ookie COOKIE",
        r"(?:set-)?cookie[\"'\\]{0,3}\s*:\s*[\"'\\]{0,3}(?P<secret>[^\s=;\"']{1,60}=[^\"'\r\n\\]{8,})",
        re.IGNORECASE,
    ),
    # ~/.netrc, and `curl -u name:password`.
    _rule("netrc-password", "machine", r"machine\s+\S+\s+login\s+\S+\s+password\s+(?P<secret>\S{3,})"),
    _rule(
        "basic-auth-option",
        "-u --user",
        r"(?:\s-u|\s--user)[= ]?\s*[\"']?[^\s:\"'@/]{1,60}:(?P<secret>[^\s\"'/]{6,})",
    ),
)  # fmt: skip


_RULES_BY_WORD = [
    (word, tuple(n for n, rule in enumerate(RULES) if word in rule.words))
    for word in sorted({word for rule in RULES for word in rule.words})
]
"""Which rules a text is tried with when a word stands in it: most texts hold none of the words."""


# ---------------------------------------------------------------- assignments

SHORTEST_KNOWN = 8
SHORTEST_PASSWORD = 5
SHORTEST_KEY = 12

ASSIGNED = re.compile(
    r"(?<![A-Za-z0-9_$-])(?P<name>[A-Za-z][A-Za-z0-9_.-]{1,80})\\{0,7}[\"']?\]?[ \t]{0,4}"
    r"(?::=|=>|=(?!=)|:(?![:/]))[ \t]{0,4}"
    r"(?:[rbfu]?\\{0,7}[\"'](?P<quoted>[^\"'\\\r\n]{4,400})\\{0,7}[\"']|(?P<bare>[^\s\"'`,;(){}\[\]<>|&\\]{4,400})(?![(\[]))",
    re.ASCII,
)
OPTION = re.compile(
    r"(?<![A-Za-z0-9])--(?:[a-z]+-)*(?:password|passwd|passphrase|secret|token|api-?key|access-key|secret-key)[= ]"
    r"(?P<value>\S{4,400})",
    re.ASCII,
)

_PASSWORD = {"password", "passwd", "pwd", "passphrase", "passcode", "pass", "userpass", "dbpass", "pgpassword"}
_SECRET = {"secret", "secrets", "token", "credential", "credentials", "apikey", "authtoken", "accesstoken", "pat"}
_KEYED = {
    "api", "access", "private", "secret", "signing", "encryption", "client", "auth", "account", "service",
    "master", "license", "webhook", "deploy", "app", "application", "consumer", "subscription", "shared", "storage",
}  # fmt: skip
_HOLDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def holds_secret(name: str) -> Literal["password", "secret"] | None:
    """Whether a name says that its value is secret: its words, of `DB_PASSWORD`, `clientSecret`, `x-api-key`."""
    lower = name.lower()
    if lower in _PASSWORD:
        return "password"
    words = [w.lower() for w in _HOLDS.findall(name)]
    if not words:
        return None
    last = words[-1]
    if last in _PASSWORD:
        return "password" if last != "pass" or len(words) > 1 else None
    if last in _SECRET or lower in _SECRET:
        return "secret"
    if last == "key" and len(words) > 1 and words[-2] in _KEYED:
        return "secret"
    if last in ("base", "value", "string", "hash", "id") and len(words) > 2 and words[-2] in ("key", "secret"):
        return "secret" if last in ("base", "value") else None
    return None


def secrets_of(env: Mapping[str, str]) -> list[str]:
    """The values that an environment holds under names of secrets."""
    return [value for name, value in env.items() if value and holds_secret(name)]


_WORDS_ONLY = re.compile(r"[A-Za-z]+(?:[ _.-][A-Za-z]+)*", re.ASCII)
_REFERENCE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)


def worth_hiding(value: str, kind: Literal["password", "secret"], quoted: bool) -> bool:
    """Whether an assigned value is a secret, not a placeholder, a number, a word, or a piece of code."""
    if value.startswith(MARK) or placeholder(value):
        return False
    if kind == "password":
        if len(value) < SHORTEST_PASSWORD or " " in value:
            return False
        return quoted or not (_REFERENCE.fullmatch(value) or value.isidentifier() and value.islower())
    if len(value) < SHORTEST_KEY or " " in value:
        return False
    if value.replace(".", "").replace("-", "").isdigit():
        return False
    if _WORDS_ONLY.fullmatch(value) and not (value.isalpha() and entropy(value) > 3.8 and len(value) >= 20):
        return False
    return looks_random(value) or not value.startswith(("/", "./", "~/", "../", "http://", "https://"))


_PLACEHOLDER = re.compile(
    r"\$.*|%[A-Za-z_]+%|<.*|\{.*|\*+.*|x{4,}.*|\.{3}.*|…*|(?:your|my|the|some|an?)[-_ ].*|"
    r"(?:changeme|example|placeholder|redacted|undefined|required|optional|string|boolean|number|secret|password|token|"
    r"none|null|true|false|todo)[.)\]]*|"
    r"process\.env\b.*|os\.(?:environ|getenv)\b.*|import\.meta\b.*|env\..*|secrets\..*|self\..*|this\..*|"
    r".*\[trimmed.*",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)


def placeholder(value: str) -> bool:
    """Whether a value stands for a secret instead of being one: a variable, `<token>`, `xxxx`, `your-key`."""
    return bool(_PLACEHOLDER.fullmatch(value)) or len(set(value)) <= 2


# ---------------------------------------------------------------- entropy

RANDOM = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{32,512}={0,2}(?![A-Za-z0-9+/_-])", re.ASCII)
RANDOM_BITS = 4.3
"""Bits a character (Shannon) from which 32 characters with both cases and digits count as random. English text is
about 4.1 over letters alone, hexadecimal at most 4."""

_IDS = re.compile(
    r"(?:msg|toolu|req|resp|call|fc|rs|ctc|chatcmpl|item|run|thread|ws|srvtoolu|gen|prompt|session|ses|prt|h1)[-_]",
    re.ASCII,
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_INTEGRITY = re.compile(r"sha(?:1|256|384|512)-")


def looks_random(text: str) -> bool:
    """Whether a run of characters is random enough to be a key, and is no hash, path, name or harness's own id.

    Hexadecimal is never taken by its looks (commits, digests): only a known shape or a name tells a hexadecimal key.
    """
    if _IDS.match(text) or _INTEGRITY.match(text) or _UUID.search(text):
        return False
    classes = (any(c.islower() for c in text), any(c.isupper() for c in text), any(c.isdigit() for c in text))
    if not all(classes) or entropy(text) < RANDOM_BITS:
        return False
    rest = _HASH.sub("", text)
    if len(rest) < 24 or not any(c.isdigit() for c in rest):
        return False
    words = sum(len(w) for w in _NAME_WORDS.findall(rest) if len(_VOWELS.findall(w)) * 4 >= len(w))
    return words < len(rest) * (WORDS_SHARE if entropy(rest) < 4.6 else 0.7)


WORDS_SHARE = 0.4
"""The share of a run that words (four letters and more, a quarter of them vowels) may have; random runs have a tenth."""
_NAME_WORDS = re.compile(r"[A-Z]?[a-z]{4,}|[A-Z]{5,}")
_VOWELS = re.compile(r"[aeiou]", re.IGNORECASE)
_HASH = re.compile(r"[0-9a-f]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def entropy(text: str) -> float:
    """Bits a character, by the frequencies in the text itself (Shannon)."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values())


# ---------------------------------------------------------------- strict

EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,18}(?![A-Za-z0-9])",
    re.ASCII,
)
HOME = re.compile(
    r"(?<![\w./~-])/(?:home|Users)/[^\s/\"'`:;,()<>\[\]]+|(?<![\w./~-])/root(?![\w-])|"
    r"\b[A-Z]:\\{1,2}Users\\{1,2}[^\s\\/\"'`:;,]+"
)
