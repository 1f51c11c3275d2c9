"""What no sandbox shows: credentials, keys, sockets of other programs."""

from __future__ import annotations

#: Below HOME: folders and files with credentials, and sockets through which other programs are reached.
IN_HOME = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".vault-token",
    ".terraformrc",
    ".terraform.d",
    ".boto",
    ".s3cfg",
    ".databrickscfg",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/containers",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/heroku",
    ".config/holdfast",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/Code/User/globalStorage",
    ".local/share/keyrings",
    ".local/share/containers",
    ".mozilla",
    ".thunderbird",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
    ".local/share/fish/fish_history",
    # Other agents' logins; that of the task's own agent is shown again.
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".copilot",
    ".config/github-copilot",
    ".local/share/opencode",
    ".pi",
)
#: Sockets of system services (docker, dbus, ssh-agent) can be connected to on a read-only file system.
FOLDERS = ("/run", "/var/run", "/mnt/wslg", "/etc/ssl/private", "/var/lib/docker")
#: Only root can read them; a task may run as root.
FILES = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-")
#: Settings of the kernel. bwrap leaves them writable for root, although it means to protect them: it asks
#: whether it may write the folders, not the files.
KERNEL = tuple(f"/proc/{name}" for name in ("acpi", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger"))
#: Empty and writable.
TEMPORARY = ("/tmp", "/var/tmp")
#: Files that a command needs although their folder is hidden.
SHOWN_AGAIN = ("/etc/resolv.conf", "/etc/hosts", "/etc/localtime")
#: Variables that name a socket outside, or a place that is hidden.
VARIABLES = (
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DOCKER_HOST",
    "TMUX",
)
