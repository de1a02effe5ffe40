# The way back: every original, then the services; any time again, wherever it was killed.

restore() { # session SESSION | hand CONTROLLER
    why='the tuner is done'
    [ "$1" != hand ] || { require_quiet "$2"; why='asked by hand'; }
    take_lock 300
    read_session
    if [ ! -e "$state/owner" ] || { [ "$1" = session ] && [ -n "$armed" ] && [ "$armed" != "$2" ]; }; then
        # That session is over, and another one may have begun; or somebody has removed our directory.
        if [ "$1" = hand ] || is_finished "$2"; then echo nothing; else echo lost; fi
        return 0
    fi
    restore_all "$why"
}

require_quiet() { # CONTROLLER: nobody's running study is taken away from it
    [ -e "$state/session" ] && [ "$purpose" = run ] && watchdog_lives || return 0
    describe_owner > /dev/null
    [ "$controller" != "$1" ] || return 0 # it holds the lock there, so its tuner has ended
    read -r tick_s ticks retry_s < "$state/ticking"
    look_at_heart
    seen=$heard tick=0
    while [ "$tick" -lt "$((ticks / 2))" ]; do
        sleep "$tick_s"
        tick=$((tick + 1))
        look_at_heart
        [ "$heard" = "$seen" ] || [ ! -e "$state/session" ] ||
            fail "$BUSY" "A tuner is at work: $(describe_owner). End it there: it restores everything."
    done
}

restore_all() { # WHY: under the lock; any time again, wherever it was killed
    if [ -e "$state/confirmed" ]; then
        finish_confirm
        return
    fi
    read_word session "$state/session" &&
        { printf '%s %s\n' "$session" "$1" > "$state/ended" && sync "$state/ended"; } 2> /dev/null
    read_session
    name_displaced
    # From here on no change can come.
    rm -f "$state/session" "$state/reserve" "$state"/incoming.*
    sync "$state"
    shorten_log
    log "restoring: $1"
    mark_foreign_values
    restore_files
    note_values # whoever sets one after this is somebody else
    ! is_read_only "$state" || complain "$state" 'it is a read-only file system'
    [ "$wrote" = no ] || rm -f "$state/restarted"
    restart=yes
    [ -n "$entries" ] && [ ! -e "$state/restarted" ] || restart=no
    reload_units
    unfinished=no
    # At boot systemd starts the services itself, after the files are back.
    [ -n "${at_boot:-}" ] || restore_services "$restart"
    [ "$unfinished" = yes ] || { true > "$state/restarted"; } 2> /dev/null
    if [ "$troubles" -gt 0 ]; then
        log "$troubles troubles are left; the originals are kept in $state"
        return "$INCOMPLETE"
    fi
    finish
    log 'everything is back'
}

restore_files() { # → troubles: how many; foreign: of these, other people's; wrote: whether something was written
    troubles=0 foreign=0 wrote=no entries=''
    for entry in "$journal"/[0-9]*; do
        [ ! -e "$entry" ] || entries="${entry##*/} $entries"
    done
    # A second time, because one setting of the kernel may change another, or be refused because of it.
    for attempt in 1 2; do
        troubles=0 foreign=0
        for number in $entries; do
            entry=$journal/$number
            if ! read_entry "$entry"; then
                complain_at_last "$entry" 'it cannot be read'
                continue
            fi
            case $kind in file | absent) (clean_directory "$real") 2> /dev/null ;; esac
            is_back && continue
            said=$(bring_back "$entry" 2>&1)
            if is_back; then
                wrote=yes
                log "put back $real"
                printf 'back\t%s\n' "$real"
                ! is_handed_on || warn "$real: somebody else has changed its mode or owner, which stay."
            else
                ! is_foreign "$entry" || foreign=$((foreign + 1))
                complain_at_last "$real" "${said:-it was written, and reads differently}; $(original_of "$entry")"
            fi
        done
        [ "$troubles" -gt 0 ] || find_changed_again || break
    done
    if [ "$troubles" = 0 ] && find_changed_again; then
        complain "$real" "another setting changed it again; $(original_of "$entry")"
    fi
}

find_changed_again() { # → entry real: a setting that was back before another one was
    for number in $entries; do
        entry=$journal/$number
        read_entry "$entry" && [ "$kind" = setting ] && ! is_back && return
    done
    return 1
}

bring_back() { # ENTRY, after read_entry
    case $kind in
        file | setting)
            [ "$(sum_of "$1/content")" = "$sum" ] || { echo "its original in $1 is damaged" >&2; return 1; }
            ;;
    esac
    if is_foreign "$1"; then
        if [ "$kind" = setting ] && [ -e "$1/foreign" ]; then
            echo "somebody else has set it to '$(cat < "$real")' where it was '$(cat < "$1/ours")' for tuner" \
                "and '$(cat < "$1/content")' before, so it stays as it is" >&2
        elif [ "$purpose" = run ]; then
            echo "somebody else has changed it, so it stays as it is" >&2
        else
            echo "it was changed after tuner had applied it" >&2
        fi
        return 1
    fi
    case $kind in
        directory) rmdir -- "$real" && sync -- "$(dirname -- "$real")" ;;
        setting) value_of "$1/content" > "$real" ;;
        absent) (remove "$real" is_not_foreign) ;;
        file)
            like=$1/content
            ! is_handed_on || like=$real
            (replace "$real" "$1/content" "$like" is_not_foreign)
            case $? in
                0) ;;
                "$FOREIGN") return 1 ;; # the second attempt says so
                1[3-9][0-9]) return 1 ;; # it was killed; the next attempt begins anew
                *)
                    # Killed in the middle, it would be taken for somebody else's. A rename needs no room.
                    [ -e "$1/overwriting" ] || { mv -fT "$1/after" "$1/overwriting" && sync "$1"; }
                    (overwrite "$real" "$1/content")
                    ;;
            esac
            ;;
    esac
}

is_handed_on() { # after read_entry: tuner changes neither mode nor owner, so somebody else has
    [ "$kind" = file ] && [ -f "$real" ] && [ "$(stat -c '%a %u %g' -- "$real")" != "$owner" ]
}

value_of() { # CONTENT, after read_entry: what the kernel takes for it; of choices it shows all, the active one in brackets
    case $real in
        /sys/*) sed 's/^.*\[\([^]]*\)\].*$/\1/' < "$1" ;;
        *) cat < "$1" ;;
    esac
}

is_foreign() { # ENTRY, after read_entry: what is there is known, and is not what tuner has written
    if [ "$kind" = setting ]; then
        case $foreign_values in *"$newline$real$newline"*) return 0 ;; esac
        [ ! -e "$1/foreign" ] || is_rebooted || return 0
        [ "$purpose" != run ] || return
    fi
    case $kind in
        file | absent) [ ! -e "$1/overwriting" ] || return ;;
        *) [ -s "$1/after" ] || return ;;
    esac
    found=$(sum_of "$real")
    ! grep -qsxF -e "$found" "$1/after"
}

is_not_foreign() { # [PATH], after read_entry: of a file
    is_ours "$@" || [ -e "$entry/overwriting" ]
}

clean_directory() { # REAL, after read_entry
    enter "$1" && clean
}

complain_at_last() { # WHAT REASON
    if [ "$attempt" = 1 ]; then
        troubles=$((troubles + 1))
    else
        complain "$1" "$2"
    fi
}

finish() { # the journal goes first, the owner last; killed in between, it is done again
    if [ -d "$journal" ]; then
        rm -rf "$state/journal.done"
        mv -T "$journal" "$state/journal.done" && sync "$state"
    fi
    unguard_reboot
    end_watchdog
    rm -rf "$state/journal.done" "$state/services"
    rm -f "$state/urls" "$state/ticking" "$state/beat" "$state/boot_id" "$state/said" "$state/restarted" \
        "$state/ready" "$state/confirmed" "$state/reserve" "$state/session" "$state/plan" "$state"/incoming.*
    rm -f "$state/owner" "$state/adopted"
    sync "$state"
}

accept() { # CONTROLLER
    require_quiet "$1"
    take_lock 300
    [ -e "$state/owner" ] || { echo nothing; return 0; }
    restore_all 'asked by hand, and to let go of what cannot be put back' || give_up
}

give_up() { # move what is not back to where nobody looks for work, and say where
    kept=$home/kept/$(date -u +%Y%m%dT%H%M%SZ)-$purpose-$$
    mkdir -p "$kept" || fail "$FAILED" "$kept: cannot be made, so nothing was given up. Check this path."
    for entry in "$journal"/[0-9]*; do
        [ -e "$entry" ] || continue
        real=$entry kind=unknown
        read_entry "$entry" && is_back && continue
        mv -T "$entry" "$kept/${entry##*/}" || fail "$FAILED" "$entry: cannot be moved to $kept. Check this path."
        log "given up: $real; what is known of it is in $kept/${entry##*/}"
        printf 'kept\t%s\t%s\n' "$real" "$kept/${entry##*/}"
    done
    sync "$kept" "$home/kept" "$home" "$journal"
    rmdir "$kept" 2> /dev/null
    finish
    log 'let go, as agreed'
}

boot() {
    [ -e "$state/owner" ] || return 0
    # A container that was restarted has the boot id of its host as before.
    is_rebooted || ! watchdog_lives || { echo nothing; return 0; }
    take_lock 300
    at_boot=''
    ! has_systemd || at_boot=yes
    restore_all 'the machine was restarted' && return
    at_boot=''
    start_watchdog # it tries again and again
    return "$INCOMPLETE"
}
