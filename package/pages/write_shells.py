"""write_shells.py - completions for bash, zsh and fish."""

import re

NOTE = "made from what pk says with --help; not to be changed by hand"


def options(text):
    """[(name, kind, placeholder, first clause of its text)]; kind: "file", "folder", "text", or "" without a value"""
    return [(o["name"], o["kind"], o["value"], re.split(r"[;.(:]", o["help"])[0].strip()) for o in text.options]


# ---- bash ----

BASH = """\
# bash completion for pk; {note}

_pk_files()
{{
    local file end
    compopt -o filenames 2>/dev/null
    while IFS= read -r file; do
        if [ -d "$file" ]; then
            COMPREPLY+=("$file")
            continue
        fi
        for end in "$@"; do
            case $file in *"$end") COMPREPLY+=("$file"); break ;; esac
        done
    done < <(compgen -f -- "$word")
}}

_pk_words()
{{
    local each
    while IFS= read -r each; do COMPREPLY+=("$each"); done < <(compgen -W "$1" -- "$word")
}}

_pk()
{{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
    COMPREPLY=()
    # "--json=FILE" comes in three words
    if [ "$word" = = ]; then
        word=
    elif [ "$before" = = ] && [ "$COMP_CWORD" -gt 3 ]; then
        before=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    if [ "$COMP_CWORD" -eq 1 ]; then
        _pk_words "{commands} help --help --version"
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}
    help)
        [ "$COMP_CWORD" -gt 2 ] || _pk_words "{commands}"
        ;;
    esac
}}

complete -F _pk pk
"""

BASH_CASE = """\
    {name})
        case $before in
{values}        esac
        case $word in
        -*) _pk_words "{options}" ;;
        *) {files} ;;
        esac
        ;;"""


def bash_values(entries):
    out = ""
    for kind, action in (("file", '_pk_files ""; return'), ("folder", "_pk_files /; return"), ("text", "return")):
        names = [name for name, is_a, _, _ in entries if is_a == kind]
        if names:
            out += f"        {' | '.join(names)}) {action} ;;\n"
    return out


def bash(commands):
    cases = []
    for name, _, text in commands:
        entries = options(text)
        ends = " ".join(f'".{end}"' if end else '""' for end in text.files)
        cases.append(BASH_CASE.format(name=name, values=bash_values(entries),
                                      options=" ".join(entry[0] for entry in entries),
                                      files=f"_pk_files {ends}" if ends else "return"))
    return BASH.format(note=NOTE, cases="\n".join(cases), commands=" ".join(name for name, _, _ in commands))


# ---- zsh ----

def zsh_text(text):
    return text.replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(":", "\\:")


def zsh_option(name, kind, value, said):
    action = {"file": "_files", "folder": "_files -/", "text": " "}.get(kind, "")
    return f"'{name}[{zsh_text(said)}]" + (f":{zsh_text(value)}:{action}'" if kind else "'")


def zsh_files(ends):
    if not ends:
        return ""
    # Of one ending alone zsh would take the brackets for what a file has to be, not for a choice.
    ending = ends[0] if len(ends) == 1 else f"({'|'.join(ends)})"
    wanted = "" if "" in ends else f' -g "*.{ending}"'
    return f" \\\n            '*:file:_files{wanted}'"


def zsh(commands):
    listed = "\n".join(f"        '{name}:{zsh_text(line)}'" for name, line, _ in commands)
    cases = ""
    for name, _, text in commands:
        lines = " \\\n            ".join(zsh_option(*entry) for entry in options(text))
        cases += f"    {name})\n        _arguments \\\n            {lines}{zsh_files(text.files)}\n        ;;\n"
    return f"""\
#compdef pk
# zsh completion for pk; {NOTE}

_pk()
{{
    local -a commands
    commands=(
{listed}
        'help:what a command takes'
    )
    if (( CURRENT == 2 )); then
        _describe -t commands command commands
        _arguments '--help[what there is]' '--version[which perfkit this is]'
        return
    fi
    shift words
    (( CURRENT-- ))
    case $words[1] in
{cases}    help)
        (( CURRENT == 2 )) && _describe -t commands command commands
        ;;
    esac
}}

_pk "$@"
"""


# ---- fish ----

def fish_text(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


FISH = """\
# fish completion for pk; {note}

function __pk_files
    for file in (commandline -ct)*
        if test -d $file
            echo $file/
        else if contains -- (string replace -r '.*\\.' '' -- $file) $argv
            echo $file
        end
    end
end

complete -c pk -f
"""


def fish_option(command, name, kind, said):
    way = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
    # -x: what follows is no file; -r: it is one
    value = {"text": " -x", "file": " -r -F", "folder": " -x -a '(__fish_complete_directories)'"}.get(kind, "")
    return f"complete -c pk -n '__fish_seen_subcommand_from {command}' {way}{value} -d '{fish_text(said)}'\n"


def fish_files(name, ends):
    given = f"complete -c pk -n '__fish_seen_subcommand_from {name}'"
    if "" in ends:
        return f"{given} -F\n"
    return f"{given} -a '(__pk_files {' '.join(ends)})'\n" if ends else ""


def fish(commands):
    names = " ".join(name for name, _, _ in commands)
    out = FISH.format(note=NOTE)
    for name, line in [(name, line) for name, line, _ in commands] + [("help", "what a command takes")]:
        out += f"complete -c pk -n __fish_use_subcommand -a {name} -d '{fish_text(line)}'\n"
    for name, line in (("help", "what there is"), ("version", "which perfkit this is")):
        out += f"complete -c pk -n __fish_use_subcommand -l {name} -d '{line}'\n"
    out += f"complete -c pk -n '__fish_seen_subcommand_from help' -a '{names}'\n"
    for name, _, text in commands:
        out += "".join(fish_option(name, option, kind, said) for option, kind, _, said in options(text))
        out += fish_files(name, text.files)
    return out
