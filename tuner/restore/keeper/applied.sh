# What was applied: confirm it, say what it is, and take it back. Each apply has its own originals.

ready() { # SESSION TICK_S TICKS RETRY_S: what was applied is active, and may be confirmed until then
    take_lock 30
    require_session "$1"
    require_number "$3"
    printf '%s %s %s\n' "$2" "$3" "$4" > "$state/ticking.new" && sync "$state/ticking.new" &&
        mv -f "$state/ticking.new" "$state/ticking" && true > "$state/ready" && sync "$state/ready" "$state" ||
        fail "$FAILED" "$state: cannot be written. Free some space."
}

confirm() {
    take_lock 300
    if [ ! -e "$state/session" ] && [ ! -e "$state/confirmed" ]; then
        read_word why "$state/ended"
        fail "$ENDED" "Nothing waits to be confirmed${why:+ (${why#* })}. Run: tuner apply"
    fi
    [ -e "$state/ready" ] || [ -e "$state/confirmed" ] ||
        fail "$ENDED" 'The apply has not finished, so it is not confirmed. Wait for it, or run: tuner restore'
    for entry in "$journal"/[0-9]*; do
        [ -e "$entry" ] && read_entry "$entry" && is_changed_since "$entry" || continue
        warn "$real was changed after it was applied. It stays as it is, and an undo will refuse to overwrite it."
    done
    true > "$state/confirmed" && sync "$state/confirmed" "$state" ||
        fail "$FAILED" "$state: cannot be written, so it is not confirmed. Free some space, and confirm again."
    finish_confirm
    log 'confirmed'
}

finish_confirm() { # any time again, wherever it was killed
    read_session
    printf '%s it was confirmed\n' "$armed" > "$state/ended" && sync "$state/ended"
    rm -f "$state/session" "$state/reserve"
    if [ -d "$journal" ] && [ ! -d "$home/applied/new/journal" ]; then
        rm -rf "$home/applied/new"
        mkdir -p "$home/applied/new" && cp -r "$state/owner" "$state/ended" "$state/services" "$home/applied/new" &&
            { [ ! -e "$state/urls" ] || cp "$state/urls" "$home/applied/new"; } &&
            sync_all "$home/applied/new"/* "$home/applied/new/services"/* "$home/applied/new" ||
            fail "$FAILED" "$home: the disk is full. The apply is confirmed. Free some space, and confirm again."
        mv -T "$journal" "$home/applied/new/journal" && sync "$home/applied/new" "$state"
    fi
    settle_applied
    finish
}

sync_all() { # PATH…: those that are there
    for file in "$@"; do
        [ ! -e "$file" ] || sync "$file" || return
    done
}

settle_applied() { # → last: the number of what was applied last, or nothing
    cd "$home/applied" 2> /dev/null || { last=''; return; }
    if [ -d journal ]; then # of a version that kept the first originals only
        mkdir -p 10001 && mv -T services 10001/services && mv -T journal 10001/journal
    fi
    last=$(ls -d [0-9]* 2> /dev/null | tail -n 1)
    if [ -d new/journal ]; then
        last=$((${last:-10000} + 1))
        mv -T new "$last"
    fi
    sync .
    cd /
}

is_changed_since() { # ENTRY, after read_entry: what is there is not what tuner wrote
    if [ "$kind" = setting ] && [ -e "${1%/*}/values" ]; then
        shown=$(grep -s '' /dev/null "$real" | grep -vxF -f "${1%/*}/values") && [ -n "$shown" ]
    else
        is_foreign "$1"
    fi
}

applied() { # PROGRAM_SUM: say what an undo would take back, and what of it somebody else has changed since
    require_program "$1"
    take_lock 30
    find_applied
    [ -n "$which" ] || { echo nothing; return 0; }
    describe_owner > /dev/null 2>&1
    printf 'number\t%s\nstudy\t%s\nsince\t%s\nearlier\t%s\n' "$which" "$study" "$since" "$earlier"
    for entry in "$journal"/[0-9]*; do
        [ -e "$entry" ] && read_entry "$entry" && ! is_back || continue
        printf 'kept\t%s\n' "$real"
        ! is_changed_since "$entry" || printf 'foreign\t%s\t%s\n' "$real" "$(both_versions)"
    done
    for file in "$state/services"/*; do
        [ ! -e "$file" ] || printf 'service\t%s\n' "${file##*/}"
    done
}

both_versions() { # after read_entry: of a file or setting that is neither the original nor tuner's
    case $kind in
        file | absent)
            written=$(tail -n 1 "$entry/after")
            found=$(sum_of "$real")
            printf 'it has the SHA-256 %s, tuner wrote %s; ' "${found%% *}" "${written%% *}"
            ;;
        setting) printf "it is '%s' now; " "$(printable "$(cat < "$real")")" ;;
    esac
    original_of "$entry"
}

find_applied() { # → which: open, NUMBER or nothing; state journal: its; earlier: how many were applied before
    if [ -e "$state/owner" ] && [ -e "$state/confirmed" ]; then finish_confirm; else settle_applied; fi
    earlier=$(ls -d "$home/applied"/[0-9]* 2> /dev/null | wc -l)
    if [ -e "$state/owner" ] && [ -n "$(ls "$journal" 2> /dev/null)" ]; then
        which=open # it waits to be confirmed, or could not be put back
    else
        which=$last
        [ -z "$last" ] || { state=$home/applied/$last journal=$home/applied/$last/journal earlier=$((earlier - 1)); }
    fi
}

undo() { # WHICH [accept]: what `applied` has named; the watchdog goes on with it, and so does the next boot
    take_lock 300
    accepts=${2-}
    (state=$home/run; [ ! -e "$state/owner" ]) || refuse_others
    find_applied
    [ -n "$which" ] || { echo nothing; return 0; }
    [ "$which" = "$1" ] || fail "$BUSY" 'Another winner was applied in the meantime. Check it, then try again.'
    [ "$accepts" = accept ] || refuse_changed_since
    if [ "$which" != open ]; then
        place=$state
        state=$home/$purpose journal=$home/$purpose/journal
        reopen_applied "$place"
    fi
    restore_all 'asked to undo it' && return
    [ "$accepts" = accept ] || return "$INCOMPLETE"
    give_up
}

refuse_changed_since() { # before anything is put back
    troubles=0
    for entry in "$journal"/[0-9]*; do
        [ -e "$entry" ] && read_entry "$entry" && ! is_back && is_changed_since "$entry" || continue
        complain "$real" "it was changed after tuner had applied it: $(both_versions)"
    done
    [ "$troubles" = 0 ] || fail "$CHANGED" 'Nothing was changed.'
}

reopen_applied() { # PLACE: it becomes a session that has ended and is not back yet
    rm -rf "$state/services" "$state/urls" "$journal" "$state/confirmed" "$state/restarted" "$state/owner"
    read_word armed "$1/ended"
    armed=${armed%% *}
    cp -r "$1/services" "$state/services" && true > "$state/urls" &&
        printf '%s asked to undo it\n' "$armed" > "$state/ended" &&
        cat /proc/sys/kernel/random/boot_id > "$state/boot_id" && echo 00000000 > "$state/beat" &&
        printf '5 24 30\n' > "$state/ticking" || fail "$FAILED" "$state: the disk is full. Nothing was changed. Free some space."
    for file in "$state/services"/*; do
        [ -e "$file" ] || continue
        # As it runs now: since it was applied, somebody may have stopped it.
        sed -i "/^\\($FOUND\\) /d" "$file"
        write_whether_it_runs "$file"
    done
    [ ! -e "$1/urls" ] || while read -r _ _ url; do write_url "$url"; done < "$1/urls"
    sync "$state/services"/* "$state/services" "$state/urls" "$state/ended" "$state/ticking" "$state" 2> /dev/null
    cp "$1/owner" "$state/owner" 2> /dev/null || echo 'study unknown' > "$state/owner"
    sync "$state/owner" "$state" && guard_reboot && start_watchdog && mv -T "$1/journal" "$journal" &&
        sync "$state" "$1" || fail "$FAILED" "$state: cannot be prepared. Nothing was changed. Read $home/log."
    rm -rf "$1"
}
