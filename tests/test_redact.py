"""Secrets go, everything else stays."""

import base64
import json
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrd.redact import MODES, Redactor, redact

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
Make = Callable[[random.Random], tuple[str, str]]


def chars(rng: random.Random, alphabet: str, length: int) -> str:
    """Random characters with at least one of each class the alphabet has: as real keys look."""
    while True:
        made = "".join(rng.choice(alphabet) for _ in range(length))
        if all(
            any(c in group for c in made)
            for group in (string.digits, string.ascii_lowercase)
            if set(group) & set(alphabet)
        ):
            return made


def b64(rng: random.Random, length: int) -> str:
    return base64.b64encode(rng.randbytes(length)).decode()


def jwt(rng: random.Random) -> str:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"' + chars(rng, ALNUM, 12).encode() + b'"}', rng.randbytes(32))
    return ".".join(base64.urlsafe_b64encode(p).decode().rstrip("=") for p in parts)


def pem(rng: random.Random, kind: str) -> str:
    body = b64(rng, 600)
    lines = "\n".join(body[i : i + 64] for i in range(0, len(body), 64))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


def shaped(prefix: str, alphabet: str, length: int, around: str = "found {} there") -> Make:
    def make(rng: random.Random) -> tuple[str, str]:
        secret = prefix + chars(rng, alphabet, length)
        return secret, around.format(secret)

    return make


def within(around: str, secret: Callable[[random.Random], str]) -> Make:
    def make(rng: random.Random) -> tuple[str, str]:
        made = secret(rng)
        return made, around.replace("{}", made)

    return make


KINDS: dict[str, Make] = {
    "github token in a remote": shaped("ghp_", ALNUM, 36, "git push https://{}@github.com/a/b.git"),
    "github fine-grained token": shaped("github_pat_", ALNUM, 82),
    "gitlab token": shaped("glpat-", ALNUM, 20),
    "aws access key": shaped("AKIA", string.ascii_uppercase + "234567", 16),
    "aws secret key": within("aws_secret_access_key = {}", lambda r: b64(r, 30)),
    "slack bot token": shaped("xoxb-123456789012-1234567890123-", ALNUM, 24),
    "openai key": shaped("sk-proj-", ALNUM + "_-", 120, 'OpenAI(api_key="{}")'),
    "anthropic key": shaped("sk-ant-api03-", ALNUM + "_-", 95, "export ANTHROPIC_API_KEY={}"),
    "google key": shaped("AIza", ALNUM + "_-", 35, "https://maps.example/api?key={}&v=3"),
    "stripe key": shaped("sk_live_", ALNUM, 24, "stripe.api_key = '{}'"),
    "sendgrid key": within("+SENDGRID={}", lambda r: f"SG.{chars(r, ALNUM, 22)}.{chars(r, ALNUM, 43)}"),
    "npm token": shaped("npm_", ALNUM, 36, "//registry.npmjs.org/:_authToken={}"),
    "pypi token": shaped("pypi-AgEIcHlwaS5vcmc", ALNUM + "_-", 100, "twine upload -p {} dist/*"),
    "huggingface token": shaped("hf_", ALNUM, 34),
    "jwt": within('{"access_token": "{}"}', jwt),
    "private key": within("$ cat id_rsa\n{}\n$", lambda r: pem(r, "RSA ")),
    "openssh key": within("{}", lambda r: pem(r, "OPENSSH ")),
    "database uri": within("postgres://app:{}@db.internal:5432/app", lambda r: chars(r, ALNUM + "!#", 14)),
    "redis uri without a name": within("REDIS_URL=redis://:{}@cache:6379/0", lambda r: chars(r, ALNUM, 18)),
    "bearer header": within("curl -H 'Authorization: Bearer {}' https://x.example", lambda r: chars(r, ALNUM, 40)),
    "basic header": within('"Authorization": "Basic {}"', lambda r: b64(r, 21)),
    "api key header": within('-H "X-Api-Key: {}"', lambda r: chars(r, HEX, 32)),
    "cookie": within("Cookie: session={}; theme=dark", lambda r: chars(r, ALNUM, 26)),
    "password in the environment": within("DB_PASSWORD={}", lambda r: chars(r, ALNUM, 12)),
    "secret in yaml": within("  client_secret: {}", lambda r: chars(r, ALNUM, 30)),
    "token in json inside json": within(r"{\"authToken\":\"{}\"}", lambda r: chars(r, ALNUM, 28)),
    "hexadecimal secret key": within("SECRET_KEY = '{}'", lambda r: chars(r, HEX, 64)),
    "option of a command": within("mysql --password={} -e 'select 1'", lambda r: chars(r, ALNUM, 10)),
    "netrc": within("machine api.example login me password {}", lambda r: chars(r, ALNUM, 16)),
    "azure storage": within("AccountName=a;AccountKey={};EndpointSuffix=core", lambda r: b64(r, 64)),
    "telegram bot": within("bot{}/getMe", lambda r: f"123456789:AA{chars(r, ALNUM, 33)}"),
    "twilio key": shaped("SK", HEX, 32),
    "digitalocean token": shaped("dop_v1_", HEX, 64),
    "random key in prose": within("the key is {} for now", lambda r: b64(r, 36)),
}


def planted(each: int) -> list[tuple[str, str, str]]:
    rng = random.Random(20261130)
    return [(kind, *make(rng)) for kind, make in KINDS.items() for _ in range(each)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_secret_is_removed(kind: str) -> None:
    secrets = [(s, t) for k, s, t in planted(30) if k == kind]

    for secret, text in secrets:
        clean = redact(text)

        assert secret not in clean.text, text
        assert not any(part in clean.text for part in secret.split("\n")[1:-1])
        assert sum(clean.removed.values()) >= 1


def test_a_hundred_secrets_in_one_text_are_all_removed() -> None:
    secrets = planted(3)
    text = "\n".join(f"line {n}: {text}\nordinary words between" for n, (_, _, text) in enumerate(secrets))

    clean = redact(text)

    assert len(secrets) >= 100
    assert len({kind for kind, _, _ in secrets}) >= 20
    assert [kind for kind, secret, _ in secrets if secret in clean.text] == []
    assert clean.text.count("ordinary words between") == len(secrets)


ORDINARY = """
b5d8da43f68262e46f6cf8549840aa26a484c4c3 fix add
sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  calc.py
"integrity": "sha512-9NykojV5Uih4lgo5So5dtw+f0JgJX30KCNI8gwhz2J9A15wD0Ml6tjHKwf6fTSa6fAdVBdZeNOs9eJ71qCk8vA=="
session 69cfb8a0-e6ec-4746-bec8-9d82477c5d3e, call toolu_01WYM7qpxjGYPRAocZj5zYLE, msg_01Kg5Frdh6pdZ6P1fR5228Y4
max_tokens: 32000, "input_tokens": 1001, tokens = tokenizer.encode(text), total_tokens=15000000
token = next(tokens); password = getpass(); secret = os.environ["SECRET"]; api_key = settings.api_key
API_KEY=$API_KEY TOKEN=${GITHUB_TOKEN} DB_PASSWORD=<password> client_secret: "{{ vault.secret }}"
def check_password(password: str, token: Token | None = None) -> bool:
key: primary-button-large, sort_key: created_at, cache_key = "user:profile:settings:v2", foreign_key: account_id
/usr/lib/python3.11/site-packages/asrd/recorders/claude_code_recorder_module_with_long_name.py:120
https://registry.example/@scope/package-name/-/package-name-12.3.4-beta.1.tgz
class AbstractSingletonProxyFactoryBeanConfigurationRegistry2Impl implements Foo
test_a_line_cut_in_two_is_recorded_once_and_never_again_even_when_it_is_long
-rw-r--r-- 1 root root 124393 Nov 30 07:11 rollout-2026-11-30T04-38-41-01a22abf-7916-7f20-b35c-e52e5017a6b6.jsonl
sk-circle-fade-dot-animation-container is a class; task-list and disk-usage are words
git clone git@github.com:owner/name.git && ssh -u user host
"""


def test_ordinary_lines_stay_as_they_are() -> None:
    clean = redact(ORDINARY)

    assert clean.text == ORDINARY
    assert clean.removed == {}


def test_strict_also_removes_mail_addresses_and_home_folders() -> None:
    text = (
        "Ann <ann.lee@mail.example> in /home/ann/app and C:\\Users\\ann\\app; /root/.cargo; /homework; git@github.com:a"
    )

    clean = redact(text, "strict")

    assert clean.text == "Ann <[removed: e-mail]> in ~/app and ~\\app; ~/.cargo; /homework; git@github.com:a"
    assert clean.removed == {"e-mail": 1, "home-folder": 3}


def test_off_changes_nothing_and_default_keeps_paths() -> None:
    text = "/home/ann/app ann@mail.example ghp_0123456789abcdefghijABCDEFGHIJ012345"

    assert redact(text, "off").text == text
    assert redact(text).text == "/home/ann/app ann@mail.example [removed: github-token]"


def test_a_known_value_is_removed_wherever_it_stands() -> None:
    redactor = Redactor("default", ["correct horse battery", "short"])

    clean = redactor("it said: correct horse battery, twice: correct horse battery; short stays")

    assert clean == "it said: [removed: known-value], twice: [removed: known-value]; short stays"
    assert redactor.removed == {"known-value": 2}


def test_a_key_block_cut_off_at_the_end_is_removed_to_the_end() -> None:
    text = "before\n" + pem(random.Random(1), "")[:400]

    assert redact(text).text == "before\n[removed: private-key]"


@given(st.text(max_size=400), st.sampled_from(MODES))
def test_redacting_twice_changes_nothing_more(text: str, mode: str) -> None:
    once = redact(text, mode)  # type: ignore[arg-type]

    assert redact(once.text, mode).text == once.text  # type: ignore[arg-type]


def test_redacting_planted_secrets_twice_changes_nothing_more() -> None:
    text = "\n".join(t for _, _, t in planted(5))

    once = redact(text, "strict")

    assert redact(once.text, "strict").text == once.text
    assert once.text.count("[removed: ") == sum(once.removed.values())


# ---------------------------------------------------------------- on captures

CAPTURES = Path(__file__).parent / "captures"
NOT_WORDS = {"signature", "encrypted_content", "thoughtSignature", "encryptedContent", "reasoning_opaque", "data"}
"""Fields of native records that hold what only a provider reads; they are random, and no brief shows them."""


def lines_of(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, str):
        yield from value.split("\n")
    elif isinstance(value, dict):
        for key, one in cast("dict[str, Any]", value).items():
            if key not in NOT_WORDS:
                yield from lines_of(one, key)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from lines_of(one, name)


def captured_lines() -> Iterator[str]:
    for path in sorted(CAPTURES.glob("*/*/home/**/*.jsonl")):
        for line in path.read_text(errors="replace").split("\n"):
            if line.strip():
                try:
                    value = json.loads(line)
                except ValueError:
                    continue  # a torn line; its text is in no record
                yield from lines_of(value)


def test_fewer_than_one_line_in_a_hundred_of_the_captures_is_changed() -> None:
    lines = [line for line in captured_lines() if line.strip()]

    changed = [line for line in lines if redact(line).text != line]

    assert len(lines) > 1000
    assert len(changed) < len(lines) / 100, changed[:10]
