# Originals: which file a path means, and the journal of what was there before the first write.

check_path() {
    case $1 in
        *[[:cntrl:]]*) fail "$REFUSED" 'A path has control characters. Name another file.' ;;
        /?*) ;;
        *) fail "$REFUSED" "$1: is not an absolute path. Name it from / on." ;;
    esac
    case $1/ in
        *//* | */./* | */../*) fail "$REFUSED" "$1: is not a normal path. Name it without //, . and .." ;;
        /proc/sys/*) ;;
        /proc/* | /dev/*) fail "$REFUSED" "$1: is not a setting. Name one of /proc/sys or /sys, or a file." ;;
        "$home"/*) fail "$REFUSED" "$1: belongs to tuner itself. Name another file." ;;
    esac
}

resolve() { # PATH → real: links are followed, for what they lead to is what changes
    check_path "$1"
    if is_setting "$1"; then
        real=$1
        [ -f "$real" ] || fail "$REFUSED" "$real: this kernel has no such setting. Leave it out."
        return
    fi
    existing=$1 missing=''
    while [ ! -e "$existing" ] && [ ! -L "$existing" ]; do
        missing=/${existing##*/}$missing
        existing=${existing%/*}
        [ -n "$existing" ] || existing=/
    done
    real=$(readlink -f -- "$existing" && printf x) ||
        fail "$REFUSED" "$1: leads nowhere ($existing is a broken link). Correct that link."
    real=${real%"${newline}x"}
    real=${real%/}$missing
    check_path "$real"
    [ ! -e "$real" ] || [ -f "$real" ] || fail "$REFUSED" "$real: is not a file. Name a file."
}

is_setting() {
    case $1 in /proc/sys/* | /sys/*) ;; *) return 1 ;; esac
}

enter() { # PATH → name: go into its directory, and be sure that no link was put in the way meanwhile
    name=./${1##*/}
    directory=${1%/*}
    CDPATH='' cd -P -- "${directory:-/}" && [ "$(pwd -P)" = "${directory:-/}" ]
}

sum_of() { # PATH: a word for what is there
    if [ -f "$1" ] && [ ! -L "$1" ]; then
        (open_file "$1" && sha256sum <&3) 2> /dev/null || echo other
    elif [ -e "$1" ] || [ -L "$1" ]; then
        echo other
    else
        echo absent
    fi
}

open_file() { # PATH → descriptor 3: opened for writing, too, a pipe in its place makes nobody wait
    if { true 3<> "$1"; } 2> /dev/null; then exec 3<> "$1"; else exec 3< "$1"; fi && [ -f /proc/self/fd/3 ]
}

read_entry() { # ENTRY → real kind owner sum
    { IFS= read -r real && IFS= read -r kind && IFS= read -r owner && IFS= read -r sum; } 2> /dev/null < "$1/meta"
}

find_entry() { # REAL JOURNAL → entry
    wanted=$1
    for entry in "$2"/[0-9]*; do
        read_entry "$entry" && [ "$real" = "$wanted" ] && return
    done
    real=$wanted
    return 1
}

list_kept() { # → kept: all paths, one a line
    kept=$newline last_number=10000
    for entry in "$journal"/[0-9]*; do
        [ -e "$entry" ] || continue
        read_entry "$entry" || fail "$FAILED" "$entry: cannot be read. Check this path."
        kept=$kept$real$newline
        last_number=${entry##*/}
    done
}

commit_entry() { # REAL KIND OWNER SUM: what is in $journal/new is an original from here on
    last_number=$((last_number + 1))
    printf '%s\n' "$1" "$2" "$3" "$4" > "$journal/new/meta" &&
        sync "$journal"/new/* "$journal/new" &&
        mv -T "$journal/new" "$journal/$last_number" &&
        sync "$journal" || return
    kept=$kept$1$newline
    log "kept the original of $1 ($2)"
}

keep_directory() { # DIRECTORY: keep its absence and make it, its parents first
    [ ! -d "$1" ] || return 0
    keep_directory "$(dirname -- "$1")" || return
    rm -rf "$journal/new"
    mkdir "$journal/new" && commit_entry "$1" directory - - || return
    mkdir -m 0755 -- "$1" && sync -- "$(dirname -- "$1")" && printf 'made\t%s\n' "$1"
}

keep_original() { # REAL
    case $kept in *"$newline$1$newline"*) return 0 ;; esac
    keep_directory "$(dirname -- "$1")" || return
    rm -rf "$journal/new"
    mkdir "$journal/new" || return
    if is_setting "$1"; then
        cat < "$1" > "$journal/new/content" || return
        commit_entry "$1" setting - "$(sha256sum < "$journal/new/content")"
    elif [ -e "$1" ]; then
        facts=$(copy_original "$1") || return
        commit_entry "$1" file "$facts" "$(sha256sum < "$journal/new/content")"
    else
        commit_entry "$1" absent - absent
    fi
}

companion_of() { # REAL → companion: a setting that the kernel changes along with it
    companion=''
    case $1 in # mm/khugepaged.c, set_recommended_min_free_kbytes
        /sys/kernel/mm/transparent_hugepage/enabled) companion=/proc/sys/vm/min_free_kbytes ;;
    esac
    [ -w "$companion" ]
}

copy_original() { # REAL: copy it with all attributes; print mode and owner
    open_file "$1" || return
    [ "$(readlink /proc/self/fd/3)" = "$1" ] || { echo 'it was exchanged meanwhile' >&2; return 1; }
    if [ "$(stat -L -c %h /proc/self/fd/3)" != 1 ]; then
        # Replacing one name would part them for ever, and writing in place is not atomic.
        echo 'it has several names (hard links); give it one of its own' >&2
        return 1
    fi
    copy /proc/self/fd/3 "$journal/new/content" && stat -L -c '%a %u %g' /proc/self/fd/3
}

copy() { # FROM TO: with mode, owner, times, access lists and security context
    cp --preserve=all -- "$1" "$2" 2> /dev/null || cp -p -- "$1" "$2"
}

original_of() { # ENTRY, after read_entry
    case $kind in
        absent) echo 'it was not there before' ;;
        directory) echo 'it was made for tuner' ;;
        *) echo "its original is $1/content" ;;
    esac
}

is_ours() { # [PATH], after read_entry: what is there is the original, or what tuner put
    found=$(sum_of "${1:-$real}")
    [ "$found" = "$sum" ] || grep -qsxF -e "$found" "$entry/after"
}

is_back() { # after read_entry
    case $kind in # tuner has written nothing there
        file | absent) [ -s "$entry/after" ] || [ -e "$entry/overwriting" ] || return 0 ;;
    esac
    case $kind in
        directory) [ ! -d "$real" ] || [ -n "$(ls -A -- "$real")" ] ;; # others may need it by now
        # The kernel forgot what a trial set. Of an apply, sysctl.d may have set it again at boot.
        setting) { [ "$purpose" = run ] && is_rebooted; } || { [ -f "$real" ] && [ "$(sha256sum < "$real")" = "$sum" ]; } ;;
        absent) [ ! -e "$real" ] && [ ! -L "$real" ] ;;
        file) [ "$(sum_of "$real")" = "$sum" ] ;;
    esac
}
