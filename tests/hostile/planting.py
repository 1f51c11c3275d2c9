"""Commands planted wherever git reads: each leaves a file with its name when it runs."""

from __future__ import annotations

import os

#: Settings whose value is a command or a program. Every driver, filter, tool and remote is named `evil`.
COMMANDS = (
    "core.fsmonitor", "core.editor", "core.pager", "core.askPass", "core.sshCommand", "core.gitProxy",
    "core.alternateRefsCommand", "sequence.editor", "pager.status", "pager.diff", "pager.log", "pager.config",
    "diff.external", "diff.evil.command", "diff.evil.textconv", "difftool.evil.cmd", "difftool.evil.path",
    "mergetool.evil.cmd", "mergetool.evil.path", "merge.evil.driver", "filter.evil.clean",
    "filter.evil.smudge", "filter.evil.process", "credential.helper", "gpg.program",
    "gpg.openpgp.program", "gpg.ssh.program", "gpg.x509.program",
    "gpg.ssh.defaultKeyCommand", "remote.evil.uploadpack", "remote.evil.receivepack", "remote.evil.vcs",
    "remote.evil.proxy", "uploadpack.packObjectsHook", "interactive.diffFilter", "man.evil.cmd",
    "man.evil.path", "browser.evil.cmd", "browser.evil.path", "web.browser", "help.browser",
    "instaweb.browser", "instaweb.httpd", "imap.tunnel", "sendemail.ccCmd", "sendemail.toCmd",
    "guitool.evil.cmd", "trailer.evil.command", "trailer.evil.cmd", "tar.evil.command", "hook.evil.command",
    "http.proxy", "gitcvs.dbDriver",
)  # fmt: skip
#: Settings that make git use them.
TRIGGERS = {
    "core.repositoryFormatVersion": "1",
    "extensions.worktreeConfig": "true",
    "extensions.partialClone": "evil",
    "remote.evil.promisor": "true",
    "remote.evil.partialCloneFilter": "blob:none",
    "commit.gpgSign": "true",
    "tag.gpgSign": "true",
    "log.showSignature": "true",
    "merge.verifySignatures": "true",
    "status.submoduleSummary": "true",
    "submodule.recurse": "true",
    "diff.submodule": "log",
    "filter.evil.required": "true",
    "merge.tool": "evil",
    "diff.tool": "evil",
    "protocol.allow": "always",
    "maintenance.auto": "true",
    "gc.auto": "1",
}
#: Keys that git documents and that look like a command, but are not.
INERT = (
    "advice.*", "blame.ignoreRevsFile", "clean.requireForce", "clone.filterSubmodules", "color.pager",
    "column.clean", "commit.cleanup", "commitGraph.maxNewFilters", "completion.commands",
    "core.attributesFile", "core.excludesFile", "core.fsmonitorHookVersion", "core.quotePath",
    "credential.useHttpPath", "diff.<driver>.binary", "diff.<driver>.cachetextconv",
    "diff.<driver>.wordRegex", "diff.<driver>.xfuncname", "diff.<driver>.funcname", "diff.guitool",
    "diff.orderFile", "difftool.prompt", "difftool.trustExitCode", "format.signatureFile", "fsck.*",
    "fsmonitor.*", "gitcvs.logFile", "gpg.ssh.allowedSignersFile", "gpg.ssh.revocationFile",
    "guitool.<name>.*", "help.htmlPath", "http.*", "instaweb.modulePath", "mailmap.file",
    "merge.<driver>.name", "merge.<driver>.recursive", "merge.guitool", "mergetool.<tool>.hideResolved",
    "mergetool.<tool>.trustExitCode", "mergetool.*", "notes.rewrite.<command>", "push.*", "rebase.*",
    "receive.*", "remote.<name>.partialclonefilter", "remote.<name>.proxyAuthMethod",
    "remote.<name>.skipDefaultUpdate", "rerere.autoUpdate", "sendemail.aliasFileType",
    "sendemail.aliasesFile", "sendemail.smtpsslcertpath", "stash.showIncludeUntracked", "uploadpack.*",
    "uploadpackfilter.*",
    # Planted in other ways: as a file, a directory or another value.
    "alias.*", "core.hooksPath", "include.path", "includeIf.<condition>.path", "init.templateDir",
    "submodule.<name>.update", "merge.tool", "diff.tool",
)  # fmt: skip
HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit", "post-merge",
    "post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman",
    "post-rewrite", "pre-applypatch", "applypatch-msg", "post-applypatch", "pre-push",
)  # fmt: skip
ATTRIBUTES = "* filter=evil diff=evil merge=evil\n"
MISSING = "1234567890" * 4


class Trap:
    """A directory of programs that must never run, and of the files that they leave."""

    def __init__(self, root: str) -> None:
        self.sprung_at = os.path.join(root, "sprung")
        self._programs = os.path.join(root, "programs")
        os.makedirs(self.sprung_at)
        os.makedirs(self._programs)

    def program(self, name: str) -> str:
        """A program that leaves a file of this name and then acts as `cat`, so that filters work."""
        path = os.path.join(self._programs, name.replace("/", "_"))
        if not os.path.exists(path):
            write(path, f"#!/bin/sh\n: > '{self.sprung_at}/{os.path.basename(path)}'\nexec cat\n", mode=0o755)
        return path

    @property
    def sprung(self) -> list[str]:
        """What ran."""
        return sorted(os.listdir(self.sprung_at))

    # ── where git reads ──

    def config(self, where: str, *, triggers: bool = True) -> str:
        """A configuration with every command."""
        lines: list[str] = []
        for key in COMMANDS:
            lines.append(_entry(key, self.program(f"{where}.{key}")))
        for name, value in TRIGGERS.items() if triggers else ():
            lines.append(_entry(name, value))
        for verb in ("status", "diff", "version", "st", "rev-parse", "ls-files"):
            lines.append(_entry(f"alias.{verb}", "!" + self.program(f"{where}.alias.{verb}")))
        lines.append(_entry("submodule.vend.update", "!" + self.program(f"{where}.submodule.update")))
        lines.append(_entry("remote.evil.url", "/"))
        return "".join(lines)

    def git_dir(self, path: str, where: str) -> None:
        """A git directory: configuration, worktree configuration, an included file, hooks, attributes."""
        included = os.path.join(path, "included")
        write(included, self.config(f"{where}.included", triggers=False))
        add(os.path.join(path, "config"), self.config(where) + f'[include]\n\tpath = "{included}"\n')
        write(os.path.join(path, "config.worktree"), self.config(f"{where}.worktree", triggers=False))
        write(os.path.join(path, "info", "attributes"), ATTRIBUTES)
        hooks = os.path.join(path, "hooks")
        self.hooks(hooks, where)
        add(os.path.join(path, "config"), f'[core]\n\thooksPath = "{hooks}"\n')

    def hooks(self, folder: str, where: str) -> None:
        """Every hook."""
        for name in HOOKS:
            program = self.program(f"{where}.hook.{name}")
            os.makedirs(folder, exist_ok=True)
            if not os.path.lexists(os.path.join(folder, name)):
                os.symlink(program, os.path.join(folder, name))

    def repository(self, path: str, where: str, *, is_bare: bool = False) -> None:
        """A repository of an agent, whose HEAD is a commit that it would have to fetch."""
        git_dir = path if is_bare else os.path.join(path, ".git")
        for name in ("objects", "refs/heads"):
            os.makedirs(os.path.join(git_dir, name), exist_ok=True)
        write(os.path.join(git_dir, "HEAD"), f"{MISSING}\n")
        write(os.path.join(git_dir, "config"), "[core]\n\tbare = " + ("true\n" if is_bare else "false\n"))
        self.git_dir(git_dir, where)
        if is_bare:
            add(
                os.path.join(git_dir, "config"),
                f'[core]\n\tworktree = "{os.path.dirname(path)}"\n\tbare = false\n',
            )

    def user(self, home: str) -> None:
        """The configuration of the user, if an agent could write it."""
        write(os.path.join(home, ".gitconfig"), self.config("home"))
        write(os.path.join(home, ".config", "git", "config"), self.config("xdg"))
        write(os.path.join(home, ".config", "git", "attributes"), ATTRIBUTES)

    def environment(self) -> dict[str, str]:
        """The variables that choose a program, and configuration in the environment."""
        names = (
            "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR",
            "GIT_PAGER", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "EDITOR", "VISUAL", "PAGER",
        )  # fmt: skip
        env = {name: self.program(f"env.{name}") for name in names}
        commands = [key for key in COMMANDS if "evil" in key or key.startswith(("core", "diff", "gpg"))]
        env["GIT_CONFIG_COUNT"] = str(len(commands))
        for number, key in enumerate(commands):
            env[f"GIT_CONFIG_KEY_{number}"] = key
            env[f"GIT_CONFIG_VALUE_{number}"] = self.program(f"env.{key}")
        hooks = os.path.join(self._programs, "template", "hooks")
        self.hooks(hooks, "template")
        return {**env, "GIT_TEMPLATE_DIR": os.path.dirname(hooks)}


def _entry(key: str, value: str) -> str:
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    head = f'[{section} "{subsection}"]' if subsection else f"[{section}]"
    return f'{head}\n\t{name} = "{value}"\n'


def write(path: str, text: str, *, mode: int = 0o644) -> None:
    """A file, with the directories that it needs."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def add(path: str, text: str) -> None:
    """Append to a file."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)
