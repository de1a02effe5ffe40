# Files: atomic writes that never destroy what somebody else has put there.
# All of these are called as $(…), so that they may change directory and open files.

replace() { # REAL SOURCE LIKE IS_OURS: write beside it and rename; attributes of LIKE (new: of a new file)
    enter "$1" || { echo "its directory is not there" >&2; return 1; }
    clean
    # Never through a link that somebody planted: noclobber is O_EXCL, and all goes through the descriptor.
    set -C
    exec 4> "$TEMPORARY" || return
    set +C
    case $3 in
        new) chmod 0644 /proc/self/fd/4 ;;
        *)
            open_file "$3" && { [ "$3" = "$2" ] || [ "$(readlink /proc/self/fd/3)" = "$3" ]; } &&
                copy /proc/self/fd/3 /proc/self/fd/4
            ;;
    esac &&
        { [ "$3" = "$2" ] || cat < "$2" > /proc/self/fd/4; } &&
        sync /proc/self/fd/4 || { rm -f -- "$TEMPORARY"; return 1; }
    # Here most of what others have written is seen, and not touched; exchange sees the rest.
    "$4" || { rm -f -- "$TEMPORARY"; return "$FOREIGN"; }
    exchange "$4" && sync . && return
    replaced=$?
    rm -f -- "$TEMPORARY"
    return "$replaced"
}

exchange() { # IS_OURS, after enter and IS_OURS (→ found): TEMPORARY gets the name; what somebody wrote there in this instant stays
    if [ ! -e "$name" ] && [ ! -L "$name" ]; then
        mv -nT -- "$TEMPORARY" "$name" || return
        [ ! -e "$TEMPORARY" ] || return "$FOREIGN"
        return 0
    fi
    # A rename onto it would destroy it unseen: mv renames it away first, at once before the other rename.
    mv -fT --backup=simple --suffix="$DISPLACED" -- "$TEMPORARY" "$name" || return
    if [ "$(sum_of "$name$DISPLACED")" = "$found" ] || "$1" "$name$DISPLACED"; then
        rm -f -- "$name$DISPLACED"
        return
    fi
    put_displaced "$1" && sync .
    return "$FOREIGN"
}

put_displaced() { # IS_OURS, after enter: what was displaced gets its name again
    if [ -e "$name$DISPLACED" ] || [ -L "$name$DISPLACED" ]; then
        mv -fT -- "$name$DISPLACED" "$TEMPORARY" &&
            mv -fT --backup=simple --suffix="$DISPLACED" -- "$TEMPORARY" "$name" || return
    else
        mv -fT -- "$name" "$name$DISPLACED" || return # it was removed
    fi
    if [ ! -e "$name$DISPLACED" ] || "$1" "$name$DISPLACED"; then
        rm -f -- "$name$DISPLACED"
    else # edited again meanwhile: the latest has the name
        [ ! -f "$name" ] || copy "$name" "$entry/foreign"
        mv -fT -- "$name$DISPLACED" "$name"
    fi
}

clean() { # after enter: a write that was killed leaves its temporary file, or what was there before
    if [ -e "$TEMPORARY" ] || [ -L "$TEMPORARY" ]; then
        rm -f -- "$TEMPORARY"
    fi
    [ -f "$name$DISPLACED" ] || return 0
    if is_ours "$name$DISPLACED" && [ -e "$name" ]; then
        rm -f -- "$name$DISPLACED"
    elif is_ours || [ ! -e "$name" ]; then
        mv -fT -- "$name$DISPLACED" "$name"
    else
        mv -fT -- "$name$DISPLACED" "$entry/foreign"
    fi
}

overwrite() { # REAL SOURCE: in the blocks that it has; for a full disk
    enter "$1" && [ -f "$name" ] && [ ! -L "$name" ] || return
    exec 4<> "$name" || return
    [ "$(readlink /proc/self/fd/4)" = "$1" ] && [ "$(stat -L -c %h /proc/self/fd/4)" = 1 ] || return
    # Half an original would be worse than none.
    [ "$(wc -c < "$2")" -le "$(($(stat -L -c '%b * %B' /proc/self/fd/4)))" ] || return
    dd if="$2" of=/proc/self/fd/4 bs=65536 conv=notrunc status=none &&
        truncate -s "$(wc -c < "$2")" /proc/self/fd/4 && sync /proc/self/fd/4
}

remove() { # REAL IS_OURS
    enter "$1" || return 0
    clean
    [ -e "$name" ] || [ -L "$name" ] || return 0
    mv -fT -- "$name" "$name$DISPLACED" || return
    if "$2" "$name$DISPLACED"; then
        rm -f -- "$name$DISPLACED" && sync .
        return
    fi
    mv -nT -- "$name$DISPLACED" "$name"
    clean
    sync .
    return "$FOREIGN"
}

is_read_only() { # DIRECTORY: only an attempt tells, for root may write everywhere
    case $( (
        cd -P -- "$1" && rm -f -- "$TEMPORARY" && set -C && true > "$TEMPORARY" && rm -f -- "$TEMPORARY"
    ) 2>&1) in
        *'Read-only file system'*) ;; *) return 1 ;;
    esac
}
