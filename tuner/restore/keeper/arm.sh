# The steps that take this machine: arm for a new session, adopt what it has lost of another.

arm() { # PROGRAM_SUM
    mkdir -p "$state"
    chmod 0700 "$home" "$state" "$program"
    request=$state/arming.$$
    trap 'rm -f "$request"' EXIT
    cat > "$request" && [ "$(tail -n 1 "$request")" = end ] ||
        fail "$REFUSED" 'The request was cut off. Try again.'
    take_lock 30
    refuse_others
    require_program "$1"
    shorten_log
    wait_for_watchdog_end
    if ! write_plan; then
        finish
        fail "$FAILED" "$state: cannot be written ($(df -h "$state" | tail -n 1)). Free some space."
    fi
    guard_reboot
    printf '%s\n' "$session" > "$state/session" && sync "$state/session" "$state"
    if ! start_watchdog; then
        finish
        fail "$FAILED" 'The watchdog does not start. Install setsid and flock (util-linux).'
    fi
    tell_plan
    log "armed for $(describe_owner)"
}

refuse_others() {
    for other in run apply; do
        state=$home/$other
        [ -e "$state/owner" ] || continue
        if [ ! -e "$state/session" ] && [ -z "$(ls "$state/journal" 2> /dev/null)" ]; then
            # Killed before anything was changed, or after everything was back.
            (journal=$state/journal purpose=$other && finish)
        elif watchdog_lives && [ -e "$state/session" ] && [ -e "$state/ready" ]; then
            fail "$BUSY" "An apply waits for \`tuner confirm\`: $(describe_owner). Confirm or restore it."
        elif watchdog_lives && [ -e "$state/session" ]; then
            fail "$BUSY" "Another tuner is at work: $(describe_owner). Wait until it ends, or end it."
        else
            owner=$(describe_owner)
            fail "$BUSY" "A tuner was killed before it restored its backups: $owner. Run \`tuner restore\` here."
        fi
    done
    state=$home/$purpose
}

write_plan() { # what the request says, on disk
    rm -rf "$state/services" "$state/urls" "$journal" "$state/ready" "$state/confirmed" "$state/restarted" \
        "$state/ended"
    for old in "$state"/arming.*; do
        [ "$old" = "$request" ] || rm -f "$old"
    done
    mkdir "$state/services" "$journal" || return
    true > "$state/owner" || return
    session='' file=''
    while IFS= read -r line; do
        case $line in
            'session '*) session=${line#* } ;;
            'url '*) write_url "${line#* }" ;;
            end) ;;
            *) write_plan_line "$state/owner" ;;
        esac || return
    done < "$request"
    case $session in '' | *[!0-9a-f]*) fail "$REFUSED" 'The request has no session.' ;; esac
    printf 'since %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >> "$state/owner"
    # All that ever began: a controller may come back with the copy of any of them.
    { cat "$state/sessions" 2> /dev/null; printf '%s\n' "$session"; } > "$state/sessions.new" &&
        sync "$state/sessions.new" && mv -f "$state/sessions.new" "$state/sessions" || return
    for file in "$state/services"/*; do
        [ -e "$file" ] && write_whether_it_runs "$file"
    done
    echo 00000000 > "$state/beat"
    cat /proc/sys/kernel/random/boot_id > "$state/boot_id"
    true >> "$home/log"
    dd if=/dev/zero of="$state/reserve" bs=1024 count="$RESERVE_KIB" status=none || return
    [ -s "$state/ticking" ] && [ -s "$state/beat" ] && [ -s "$state/boot_id" ] || return
    # All that the way back needs outlives a power cut from here on: before the first change, this program too.
    set --
    for file in "$state/services"/* "$state/urls"; do
        [ ! -e "$file" ] || set -- "$@" "$file"
    done
    sync "$@" "$state/owner" "$state/ticking" "$state/beat" "$state/boot_id" "$state/reserve" "$program" \
        "$state/services" "$journal" "$state" "$home" "${home%/*}"
}

write_plan_line() { # OWNER, after reading a line → file: of the service that the lines after it belong to
    value=${line#* }
    case $line in
        'by '* | 'controller '* | 'study '*) printf '%s\n' "$line" >> "$1" ;;
        'ticking '*) printf '%s\n' "$value" > "$state/ticking" ;;
        'service '*)
            case $value in
                .* | -* | *[!A-Za-z0-9@_.:-]*)
                    fail "$REFUSED" "$value: is not a name of a service. Correct it."
                    ;;
            esac
            file=$state/services/$value
            ;;
        'systemd '* | 'pid-file '* | 'check '* | 'stop '* | 'start '* | 'restart '* | 'reload '*)
            printf '%s\n' "$line" >> "$file"
            ;;
        *) fail "$REFUSED" 'The request has a line that is not known.' ;;
    esac
}

write_url() {
    if ! command -v curl > /dev/null; then
        printf 'warning\tcurl is not installed, so a restore cannot check whether the server answers.\n'
        return 0
    fi
    answer=$(ask "$1")
    if [ "${answer%% *}" = 000 ]; then
        printf 'warning\t%s does not answer now, so a restore cannot check it.\n' "$1"
    elif [ "$(ask "$1")" = "$answer" ]; then
        printf '%s %s\n' "$answer" "$1" >> "$state/urls"
    else # its length differs from answer to answer
        printf '%s - %s\n' "${answer%% *}" "$1" >> "$state/urls"
    fi
}

write_whether_it_runs() { # FILE
    read_service "$1"
    [ "$systemd" = no ] || wait_until_settled "${1##*/}"
    is_running "${1##*/}"
    case $? in
        0) echo 'ran yes' ;;
        1) echo 'ran no' ;;
        *) echo 'ran unknown' ;;
    esac >> "$1"
    if [ "$systemd" = yes ]; then
        find_along "${1##*/}"
        printf 'along %s\n' "$along"
    elif [ -n "$pid" ] && [ -d "/proc/$pid" ]; then
        keep_manner "$pid"
    fi >> "$1"
    warn_of_limits "$1"
}

warn_of_limits() { # FILE: which limits a restart loses, for who may not set them here
    read_service "$1"
    # shellcheck disable=SC2086 - words
    lost=$(/bin/sh -c "$TRY_LIMITS" try $limits 9>&-)
    [ -z "$lost" ] || warn "${1##*/}: a restart loses these limits, which cannot be set here: $lost"
}

wait_until_settled() { # NAME: what is just starting would be taken for stopped, and stopped in the end
    for _ in $twenty $twenty; do
        unit_state=$(systemctl is-active -- "$1")
        case $unit_state in activating | deactivating) sleep 0.5 9>&- ;; *) return ;; esac
    done
    finish
    fail "$REFUSED" "$1: is still $unit_state after 20 s. Wait until it has started, or find out why it does not."
}

tell_plan() { # the controller keeps it as well
    for file in "$state/services"/*; do
        [ ! -e "$file" ] || sed -n "s/^\\($FOUND\\) /found\t${file##*/} &/p" "$file"
    done
    { while IFS= read -r line; do printf 'answered\t%s\n' "$line"; done < "$state/urls"; } 2> /dev/null
    read_word boot "$state/boot_id" && printf 'boot\t%s\n' "$boot"
    describe_owner > /dev/null
    printf 'since\t%s\n' "$since"
}

knows() { # SESSION: one that began here, whatever became of it
    read_word adopted "$state/adopted"
    [ "$adopted" != "$1" ] && ! is_finished "$1" || echo known
}

adopt() { # PROGRAM_SUM SESSION HEAD_BYTES SIZE: the plan and what is known of originals, then their contents
    case $2 in '' | *[!0-9a-f]*) fail "$REFUSED" 'The request has no session.' ;; esac
    require_program "$1"
    mkdir -p "$state" && chmod 0700 "$home" "$state" "$program" || fail "$FAILED" "$state: cannot be made."
    receive "$3" "$4"
    take_lock 300
    read_session
    adopted=''
    [ ! -e "$state/owner" ] || read_word adopted "$state/adopted"
    if [ "$adopted" != "$2" ]; then
        [ ! -e "$state/owner" ] || [ "$armed" != "$2" ] || { echo present; return 0; }
        ! is_finished "$2" || { echo nothing; return 0; }
        refuse_others # the other purpose, too
        adopt_plan "$2"
    fi
    adopt_originals
    guard_reboot
    start_watchdog
    log "has adopted the originals of $(describe_owner)"
    echo adopted
}

adopt_plan() { # SESSION: there is no session open, so nothing is changed any more, only restored
    rm -rf "$state/services" "$state/urls" "$journal" "$state/confirmed" "$state/restarted" "$state/ended" \
        "$state/session"
    printf '%s adopted from the controller\n' "$1" > "$state/ended"
    mkdir "$state/services" "$journal" && true > "$state/plan" || fail "$FAILED" "$state: has no space."
    file=''
    while IFS= read -r line; do
        case $line in
            'since '*) printf '%s\n' "$line" >> "$state/plan" ;;
            'boot '*) printf '%s\n' "${line#* }" > "$state/boot_id" ;;
            'ran '* | 'along '* | 'directory '* | 'mask '* | 'limits '* | 'groups '* | 'ids '* | 'environment '*)
                printf '%s\n' "$line" >> "$file" ;;
            'value '*) printf '%s\n' "${line#* }" >> "$journal/values" ;;
            'answered '*) printf '%s\n' "${line#* }" >> "$state/urls" ;;
            'made '* | 'written '* | 'absent '* | 'setting '* | 'file '*) ;; # originals: see adopt_originals
            *) write_plan_line "$state/plan" ;;
        esac || fail "$FAILED" "$state: has no space."
    done < "$request.head"
    [ -s "$state/ticking" ] || fail "$REFUSED" 'The request has no plan.'
    sync "$state"/services/* "$state/services" "$state/plan" "$state/ticking" "$state/ended" "$journal" 2> /dev/null
    printf '%s\n' "$1" > "$state/adopted" && sync "$state/adopted" &&
        mv -fT "$state/plan" "$state/owner" && printf '%s\n' "$1" >> "$state/sessions" &&
        sync "$state/sessions" "$state" "$home" || fail "$FAILED" "$state: has no space."
}

adopt_originals() {
    list_kept
    written=''
    while IFS= read -r line <&5; do
        value=${line#* }
        case $line in
            'written '*)
                written=$written$value$newline # before the original that it belongs to
                continue
                ;;
            'made '*) adopt_entry directory - "$value" ;;
            'absent '*) adopt_entry absent - "$value" ;;
            'setting '*)
                take_content "${value%% *}"
                adopt_entry setting - "${value#* }"
                ;;
            'file '*)
                take_content "${value%% *}"
                value=${value#* }
                path=${value#* * * }
                adopt_entry file "${value%" $path"}" "$path"
                ;;
        esac || fail "$FAILED" "$value: its backup cannot be stored. Look into $journal."
        written=''
    done 5< "$request.head"
}

adopt_entry() { # KIND OWNER PATH; entries that exist are never overwritten
    check_path "$3"
    real=$3
    # What does not exist any more keeps its name: it is told when it cannot be put back.
    ! (resolve "$3") > /dev/null 2>&1 || resolve "$3"
    case $kept in *"$newline$real$newline"*) return 0 ;; esac
    rm -rf "$journal/new"
    mkdir "$journal/new" || return
    case $written in
        '') ;;
        anything*) true > "$journal/new/overwriting" || return ;; # of a version that kept no sums
        *) printf '%s' "$written" > "$journal/new/after" || return ;;
    esac
    case $1 in
        directory) commit_entry "$real" directory - - ;;
        absent) commit_entry "$real" absent - absent ;;
        setting)
            mv -f "$request.content" "$journal/new/content" &&
                commit_entry "$real" setting - "$(sha256sum < "$journal/new/content")"
            ;;
        file)
            # Access lists and other attributes were not sent; what tuner wrote there got the original's.
            [ ! -f "$real" ] || copy "$real" "$journal/new/content" || return
            # shellcheck disable=SC2086 - three words
            set -- $2
            cat < "$request.content" > "$journal/new/content" &&
                chown "$2:$3" "$journal/new/content" && chmod "$1" "$journal/new/content" &&
                commit_entry "$real" file "$*" "$(sha256sum < "$journal/new/content")"
            ;;
    esac
}
