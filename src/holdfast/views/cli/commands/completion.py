"""holdfast completion: print a shell completion script; it completes task ids, too."""

from __future__ import annotations

from holdfast.views.cli.parse.command_spec import Argument, Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: `holdfast _complete WORDS…` prints `candidate TAB description` lines, or `:files` or `:dirs` to leave it
#: to the shell. It is the program in PATH, whatever was typed: `./holdfast` may be a file of a clone, and Tab
#: is not Enter. bash inserts a candidate as it is: one that a project named must not be a command there.
_BASH = """\
_holdfast() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) compopt -o default; COMPREPLY=(); return ;;
            :dirs) compopt -o dirnames; COMPREPLY=(); return ;;
            *) printf -v line %q "${line%%$'\\t'*}"; COMPREPLY+=("$line") ;;
        esac
    done < <(command holdfast _complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _holdfast holdfast
"""
_ZSH = """\
#compdef holdfast
_holdfast() {
    local line
    local -a found
    for line in "${(@f)$(command holdfast _complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            :files) _files; return ;;
            :dirs) _files -/; return ;;
            '') ;;
            *) found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}") ;;
        esac
    done
    _describe holdfast found
}
if [ "$funcstack[1]" = _holdfast ]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
"""
_FISH = """\
function __holdfast_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (command holdfast _complete $words[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (commandline -ct)
            case ':dirs'
                __fish_complete_directories (commandline -ct)
            case '*'
                printf '%s\\n' $line
        end
    end
end
complete -c holdfast -f -a '(__holdfast_complete)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}

COMMAND = Command(
    name="completion",
    summary="Print a shell completion script.",
    examples=(
        'eval "$(holdfast completion bash)"   # in ~/.bashrc',
        'eval "$(holdfast completion zsh)"    # in ~/.zshrc, after compinit',
        "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
    ),
    arguments=(Argument(dest="shell", metavar="bash|zsh|fish", choices=tuple(SCRIPTS)),),
)


def run(values: dict[str, Any]) -> int:
    """Print the script."""
    print(SCRIPTS[values["shell"]], end="")
    return 0
