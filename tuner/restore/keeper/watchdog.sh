# The watchdog: two processes, each of which goes on without the other.

start_watchdog() {
    watchdog_lives && return
    if ! { has_systemd && systemd-run --quiet --collect --unit="tuner-watchdog-$purpose" \
        --property=Restart=on-failure --property=RestartSec=1 --property=StartLimitIntervalSec=0 \
        --property=KillMode=process --property=OOMScoreAdjust=-1000 \
        /bin/sh "$program" watch "$purpose" < /dev/null > /dev/null 2>&1 9>&-; }; then
        # Forked by setsid: what a shell puts into the background ignores SIGINT, and so would our services.
        # The setsid of busybox cannot fork.
        setsid --fork /bin/sh "$program" watch "$purpose" < /dev/null > /dev/null 2>&1 9>&- ||
            setsid /bin/sh "$program" watch "$purpose" < /dev/null > /dev/null 2>&1 9>&- &
    fi
    # It must have left our process group before we end: that may be killed with us.
    for _ in $twenty $twenty $twenty $twenty $twenty; do
        watchdog_lives && return
        sleep 0.05 9>&-
    done
    return 1
}

end_watchdog() {
    { read -r parent child < "$state/watchdog"; } 2> /dev/null || return 0
    for pid in "$parent" "$child"; do
        case $pid in "$$" | "$PPID") return ;; esac # it is the watchdog that restores
    done
    for pid in "$parent" "$child"; do
        case $(tr '\0' ' ' 2> /dev/null < "/proc/$pid/cmdline") in
            *" $program "*) kill "$pid" 2> /dev/null ;;
        esac
    done
    rm -f "$state/watchdog"
}

wait_for_watchdog_end() {
    for _ in $twenty; do
        watchdog_lives || return 0
        sleep 0.1 9>&-
    done
    fail "$BUSY" 'The watchdog of an earlier session is still there. Try again in a minute.'
}

watch() { # [again]: two processes, each of which goes on without the other; setsid or systemd detached them
    if [ "${1-}" != again ]; then
        exec 8>> "$state/watching" || exit "$FAILED"
        flock -w 5 8 || exit 0 # there is one already; who only asks lets go at once
    fi
    survive_failed_forks watch
    { echo -1000 > "/proc/$$/oom_score_adj"; } 2> /dev/null
    trap : HUP
    while [ -e "$state/owner" ]; do
        /bin/sh "$program" guard "$purpose" && break
        log 'the watchdog was killed; it goes on'
        sleep 1 8>&-
    done
    trap - EXIT
    # Somebody has removed what it watched, and with that all that a boot could put back.
    [ -e "$home/run/owner" ] || [ -e "$home/apply/owner" ] || unguard_reboot
}

survive_failed_forks() { # STEP: a shell that cannot fork ends, and no fork is needed to become another program
    trap 'go_on_as '"$1"' "$?"' EXIT
}

go_on_as() { # STEP STATUS
    [ "$2" -le 128 ] || [ "$2" -gt 192 ] || exit "$2" # killed
    [ -d "$journal" ] || exit "$2" # killed by bash with another status, for all is done
    cd / && exec chrt -i 0 /bin/sh "$program" nap "$purpose" "$1"
}

nap() { # STEP: be it again in a second or two; without sleep, which is a fork, and at the lowest priority
    read -r now _ < /proc/uptime
    until=$((${now%.*} + 2))
    while read -r now _ < /proc/uptime && [ "${now%.*}" -lt "$until" ]; do :; done
    exec chrt -o 0 /bin/sh "$program" "$1" "$purpose" again
}

guard() { # counts its own ticks, so neither a step of the clock nor a suspended machine makes it fire
    survive_failed_forks guard
    trap : HUP
    { printf '%s %s\n' "$PPID" "$$" > "$state/watchdog"; } 2> /dev/null
    quiet=0 seen=''
    while [ -e "$state/owner" ] && { read -r tick_s ticks retry_s < "$state/ticking"; } 2> /dev/null; do
        if [ ! -e "$state/session" ]; then
            sleep "$retry_s" 8>&-
            (restore_again)
            continue
        fi
        sleep "$tick_s" 8>&- || continue # a tick that was not slept does not count
        look_at_heart
        if [ "$heard" = "$seen" ]; then
            quiet=$((quiet + 1))
        else
            quiet=0 seen=$heard
        fi
        if [ "$quiet" -ge "$ticks" ]; then
            (fire)
            [ ! -e "$state/session" ] || sleep "$retry_s" 8>&- # read-only, or no room for its processes
        fi
    done
    trap - EXIT
}

look_at_heart() { # → heard
    read_word beat "$state/beat"
    read_word session "$state/session"
    heard="$session $beat"
}

fire() { # in a process of its own: the lock ends with it
    take_lock 300
    [ -e "$state/session" ] || return
    look_at_heart
    [ "$heard" = "$seen" ] || return # it came in the last moment
    case $purpose$(ls "$state/ready" 2> /dev/null) in
        apply?*) restore_all 'it was not confirmed in time' ;;
        *) restore_all "no heartbeat of the controller for $ticks ticks of $tick_s s" ;;
    esac > /dev/null
}

restore_again() {
    take_lock 300
    [ -e "$state/owner" ] && [ ! -e "$state/session" ] && restore_all 'trying again' > /dev/null
}

beat() { # SESSION NUMBER
    require_session "$1"
    require_number "$2"
    # In place and of one length: it must not fail on a full disk.
    printf '%08d\n' "$2" 1<> "$state/beat" || exit "$FAILED"
    watchdog_lives && return
    take_lock 30
    require_session "$1"
    start_watchdog || fail "$FAILED" 'The watchdog does not start again.'
    log 'the watchdog was gone; it is there again'
}

guard_reboot() {
    if has_systemd; then
        before=''
        for file in "$state/services"/*; do
            [ -e "$file" ] && read_service "$file" && [ "$systemd" = yes ] || continue
            before="$before ${file##*/}.service"
        done
        mkdir -p "${SYSTEMD_LINK%/*}"
        {
            printf '[Unit]\nDescription=Puts back what tuner changed before the reboot\n'
            printf 'RequiresMountsFor=%s\nAfter=local-fs.target\nBefore=%s\n' "$home" "$before"
            # A shell takes an empty or a cut program for a success.
            printf '[Service]\nType=oneshot\nExecStartPre=/bin/sh -c "grep -q ^main %s"\n' "$program"
            printf 'ExecStart=/bin/sh %s boot %s\n[Install]\nWantedBy=multi-user.target\n' "$program" "$purpose"
        } > "$SYSTEMD_UNIT" && chmod 0644 "$SYSTEMD_UNIT" && ln -sf "$SYSTEMD_UNIT" "$SYSTEMD_LINK" &&
            sync "$SYSTEMD_UNIT" "${SYSTEMD_UNIT%/*}" "${SYSTEMD_LINK%/*}" && return
    elif [ -d "${CRON_FILE%/*}" ] && { command -v cron || command -v crond; } > /dev/null; then
        printf '@reboot root if grep -q ^main %s; then /bin/sh %s boot %s; else echo %s is damaged; fi\n' \
            "$program" "$program" "$purpose" "$program" > "$CRON_FILE" &&
            chmod 0644 "$CRON_FILE" && sync "$CRON_FILE" "${CRON_FILE%/*}" && return
    fi
    printf 'warning\tnothing guards a reboot here (no systemd, no cron): after one, run tuner restore.\n'
}

unguard_reboot() {
    if [ -e "$SYSTEMD_UNIT" ] && rm -f "$SYSTEMD_UNIT" "$SYSTEMD_LINK" && has_systemd; then
        systemctl daemon-reload 8>&- 9>&- # or it would still list the unit
    fi
    rm -f "$CRON_FILE"
}
