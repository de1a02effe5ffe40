# Services: check, reload and restart them, and start again what ran before.

activate() { # SESSION check|restart|reload NAME, SESSION units: under the lock, so no restore comes in between
    out=$state/incoming.$$.out err=$state/incoming.$$.err
    trap 'rm -f "$out" "$err"' EXIT
    take_lock 30
    require_session "$1"
    { true > "$out"; } 2> /dev/null && { true > "$err"; } 2> /dev/null || out=/dev/null err=/dev/null
    if [ "$2" != units ]; then
        case ${3-} in '' | .* | */*) fail "$REFUSED" 'The request has no name of a service.' ;; esac
        [ -e "$state/services/$3" ] || fail "$REFUSED" "$3: is no service that tuner was armed for."
        read_service "$state/services/$3"
    fi
    case $2 in
        units) serve units 'systemctl daemon-reload' ;;
        check) serve check "$check" ;;
        reload) serve reload "$reload" ;;
        restart)
            # Somebody decided that it must not start; stopping it then would be the end of it.
            [ "$systemd" = no ] || is_loaded "$3" ||
                fail "$REFUSED" "$3: its unit is $loaded, so it was left running. Check the unit, then run the command again."
            can_read_files || fail "$REFUSED" "$3: was left running: $(printable "$unreadable"). Check these files."
            if [ -n "$restart" ]; then
                start_sockets > /dev/null 2>&1
                serve restart "$restart" "$RESTART_TIMEOUT_S"
            else
                serve stop "$stop" && serve start "$start" "$SERVICE_TIMEOUT_S" run_as_before
            fi
            # A start that failed before took them down, and the restart starts only what runs.
            # shellcheck disable=SC2086 - words
            [ "$ended" != 0 ] || [ -z "$along" ] || systemctl start --no-block -- $along > /dev/null 2>&1 9>&-
            ;;
        *) fail "$REFUSED" "$2: is nothing that a service can be told." ;;
    esac
    exec 9>&- # whoever listens may be slow
    printf 'ran\t%s\t%s\n' "$verb" "$ended"
    say_lines out "$out"
    say_lines err "$err"
    [ "$ended" = 0 ] || return "$SERVICE_FAILED"
}

serve() { # VERB LINE [TIMEOUT_S [RUN]] → ended
    verb=$1
    [ -n "$2" ] || fail "$REFUSED" "The service has no command to $1."
    "${4:-run_apart}" "$2" "${3-}" > "$out" 2> "$err"
    ended=$?
    return "$ended"
}

say_lines() { # WORD FILE
    [ -s "$2" ] || return 0
    tail -c "$SAID_BYTES" "$2" | while IFS= read -r line || [ -n "$line" ]; do
        printf '%s\t%s\n' "$1" "$line"
    done
}

read_service() { # FILE → systemd pid_file check stop start restart reload ran along, and of keep_manner
    systemd=no pid_file='' check='' stop='' start='' restart='' reload='' ran=unknown along=''
    directory='' mask='' limits='' groups='' ids='' environment=''
    while IFS= read -r line; do
        case $line in
            'systemd '*) systemd=${line#* } ;;
            'pid-file '*) pid_file=${line#* } ;;
            'check '*) check=${line#* } ;;
            'stop '*) stop=${line#* } ;;
            'start '*) start=${line#* } ;;
            'restart '*) restart=${line#* } ;;
            'reload '*) reload=${line#* } ;;
            'ran '*) ran=${line#* } ;;
            'along '*) along=${line#* } ;;
            'directory '*) directory=${line#* } ;;
            'mask '*) mask=${line#* } ;;
            'limits '*) limits=${line#* } ;;
            'groups '*) groups=${line#* } ;;
            'ids '*) ids=${line#* } ;;
            'environment '*) environment=${line#* } ;;
        esac
    done < "$1"
}

find_along() { # NAME → along: units that run, and that systemd stops when it stops this one
    known=" $1 $1.service " queue=$1 along=''
    while [ -n "$queue" ]; do
        # shellcheck disable=SC2086 - words
        found=$(systemctl show --value "--property=$DEPENDENTS" -- $queue 2> /dev/null 9>&-)
        queue=''
        for unit in $found; do
            case $known in *" $unit "*) continue ;; esac
            known="$known$unit " queue="$queue $unit"
            ! systemctl is-active --quiet -- "$unit" 9>&- || along="$along $unit"
        done
    done
    along=${along# }
}

is_running() { # NAME, after read_service: 0 yes, 1 no, 2 cannot be told
    pid=''
    if [ "$systemd" = yes ]; then
        systemctl is-active --quiet -- "$1"
    elif [ -n "$pid_file" ]; then
        # Whoever may write there may have put a pipe in its place, which would be read for ever.
        [ ! -f "$pid_file" ] || pid=$(timeout 5 head -n 1 -- "$pid_file" 2> /dev/null 8>&- 9>&-)
        pid=${pid#"${pid%%[! ]*}"}
        pid=${pid%%[! 0-9]*}
        pid=${pid%% *}
        [ -n "$pid" ] && [ -d "/proc/$pid" ]
    else
        return 2
    fi
}

run_apart() { # LINE [TIMEOUT_S]: a command of the service, away from our locks and from what we set for ourselves
    (
        umask 022
        echo 0 > /proc/self/oom_score_adj
        exec timeout "${2:-$SERVICE_TIMEOUT_S}" /bin/sh -c "$1"
    ) < /dev/null 8>&- 9>&-
}

keep_manner() { # PID: how a process was started that no systemd will start again, as lines of its service
    ! directory=$(readlink "/proc/$1/cwd") || [ ! -d "$directory" ] || printf 'directory %s\n' "$directory"
    sed -n 's/^Umask:[[:space:]]*/mask /p' "/proc/$1/status"
    printf 'limits '
    prlimit --pid "$1" --noheadings --raw --output RESOURCE,SOFT,HARD 2> /dev/null | while read -r name soft hard; do
        printf -- '--%s=%s:%s ' "$(echo "$name" | tr '[:upper:]' '[:lower:]')" "$soft" "$hard"
    done
    printf '\ngroups '
    cmp -s "/proc/$1/cgroup" /proc/self/cgroup || list_groups "$1"
    printf '\n'
    read -r _ user _ << END
$(grep ^Uid: "/proc/$1/status")
END
    [ "$user" = 0 ] || printf 'ids --reuid=%s --regid=%s --groups=%s\n' "$user" \
        "$(sed -n 's/^Gid:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$1/status")" \
        "$(sed -n 's/^Groups:[[:space:]]*//p' "/proc/$1/status" | sed 's/ *$//; s/ /,/g')"
    # A program that shows a title of its own has written it over its environment.
    grep -qz = "/proc/$1/environ" && ! grep -qzv '^[^=][^=]*=' "/proc/$1/environ" &&
        printf 'environment %s\n' "$(base64 -w 0 < "/proc/$1/environ")"
    return 0
}

list_groups() { # PID: the files by which a process gets into its control groups (cgroups(7))
    while IFS=: read -r _ controllers group; do
        file=/sys/fs/cgroup/$controllers$group/cgroup.procs
        [ ! -w "$file" ] || printf '%s ' "$file"
    done < "/proc/$1/cgroup"
}

run_as_before() { # LINE, after read_service: as `run_apart`, in the manner that was kept
    [ "$systemd" = no ] && command -v xargs > /dev/null || { run_apart "$@"; return; }
    {
        if [ -n "$environment" ]; then printf '%s' "$environment" | base64 -d; else printf 'PATH=%s\0' "$PATH"; fi
        printf '%s\0' /bin/sh -c "$1"
    } | (
        cd "${directory:-/}" 2> /dev/null || cd /
        umask "${mask:-022}"
        echo 0 > /proc/self/oom_score_adj
        # shellcheck disable=SC2086 - words
        exec timeout "$SERVICE_TIMEOUT_S" /bin/sh -c "$ENTER" enter "$groups" "$limits" ${ids:+setpriv $ids} \
            xargs -0 env -i --
    ) 8>&- 9>&-
}

run_line() { # LINE [TIMEOUT_S [RUN]]
    said=$state/said
    { true > "$said"; } 2> /dev/null || said=/dev/null
    "${3:-run_apart}" "$1" "${2-}" > "$said" 2>&1
}

wait_until_stopped() {
    for _ in $twenty; do
        is_running "$service" || return
        sleep 0.5 8>&- 9>&-
    done
}

is_loaded() { # UNIT → loaded: masked, not-found …
    loaded=$(systemctl show --property=LoadState --value -- "$1" 2> /dev/null 8>&- 9>&-)
    [ "$loaded" = loaded ]
}

can_read_files() { # → unreadable: what is changed and its originals; a service that is stopped needs them
    set --
    for entry in "$journal"/[0-9]*; do
        [ -e "$entry" ] || continue
        [ ! -f "$entry/content" ] || set -- "$@" "$entry/content"
        read_entry "$entry" && ! is_setting "$real" && [ -f "$real" ] && set -- "$@" "$real"
    done
    unreadable=$(timeout "$SERVICE_TIMEOUT_S" cat -- /dev/null "$@" 2>&1 > /dev/null 8>&- 9>&-)
}

may_be_stopped() { # after read_service: what serves is not stopped unless it will start again
    reason=''
    if [ "$held" -gt 0 ]; then
        reason='it is restarted once everything else is back'
    elif [ -n "$pid_file" ] && is_read_only "${pid_file%/*}"; then
        reason="${pid_file%/*} is a read-only file system"
    elif ! can_read_files; then
        reason="its files cannot be read: $unreadable"
    elif [ "$systemd" = yes ] && ! is_loaded "$service"; then
        reason="its unit is $loaded"
    elif [ -n "$check" ] && ! run_line "$check"; then
        reason="its own check refuses the files as they are now: $(last_words "$said")"
    fi
    [ -n "$reason" ] || return 0
    unfinished=yes
    complain "$service" "it was left running with its present configuration: $reason"
    return 1
}

restore_service() { # FILE RESTART
    service=${1##*/}
    read_service "$1"
    restore_program "$2"
    [ -z "$along" ] || start_along
}

restore_program() { # RESTART, after read_service
    is_running "$service"
    running=$?
    if [ "$ran" = no ]; then
        [ "$running" = 0 ] || return
        run_line "$stop" || complain "$service" "it does not stop: $(last_words "$said")"
        return
    fi
    if [ "$running" != 1 ]; then
        [ "$1" = yes ] && may_be_stopped || return
    fi
    if ! start_again; then
        complain "$service" "it does not start: $(last_words "$said")"
        return
    fi
    [ "$ran" = yes ] || return
    # Not for long: whoever restores comes again, and what kept it from starting may be gone then.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        is_running "$service" && log "started $service" && return
        sleep 0.5 8>&- 9>&-
    done
    complain "$service" "it was started and does not run: $(last_words "$said")"
}

start_again() { # after read_service
    # systemd starts nothing that failed too often.
    # shellcheck disable=SC2086 - words
    [ "$systemd" = no ] || systemctl reset-failed -- "$service" $along 2> /dev/null
    if [ -n "$restart" ]; then
        start_sockets
        run_line "$restart" "$RESTART_TIMEOUT_S"
        return
    fi
    run_line "$stop"
    wait_until_stopped # a stop may come back early
    run_line "$start" "$SERVICE_TIMEOUT_S" run_as_before
}

start_sockets() { # those that fell: none is started while its service runs
    for unit in $along; do
        case $unit in *.socket) ;; *) continue ;; esac
        systemctl is-active --quiet -- "$unit" || { run_apart "$stop" && run_apart "systemctl start -- '$unit'"; }
    done
}

start_along() { # what fell with the service
    is_running "$service" || return
    for unit in $along; do
        systemctl is-active --quiet -- "$unit" && continue
        run_line "systemctl start -- '$unit'" && systemctl is-active --quiet -- "$unit" &&
            log "started $unit" && continue
        complain "$unit" "it stopped with $service, and does not start again: $(last_words "$said")"
    done
}

restore_services() { # RESTART → unfinished: whether a service still has to be restarted
    held=$((troubles - foreign)) unfinished=no
    for file in "$state/services"/*; do
        [ -e "$file" ] && restore_service "$file" "$1"
    done
    [ "$held" -gt 0 ] || restore_answers
}

restore_answers() {
    [ -e "$state/urls" ] || return
    while IFS=' ' read -r expected length url; do
        [ -n "$url" ] || { url=$length && length=-; } # of a version that kept no lengths
        for _ in 1 2 3 4 5 6; do
            answer=$(ask "$url")
            case "$length $answer" in "- $expected "* | "$length $expected $length") break ;; esac
            sleep 0.5 8>&- 9>&-
        done
        status=${answer%% *}
        case $status in
            "$expected")
                [ "$length" = - ] || [ "$length" = "${answer#* }" ] ||
                    warn "$url answers with ${answer#* } bytes, but with $length before. Check whether it is right."
                ;;
            000) complain "$url" 'it does not answer' ;;
            # A page changes for many reasons, and what tuner has changed is back.
            *) warn "$url answers $status, but $expected before." ;;
        esac
    done < "$state/urls"
}

ask() { # URL: print its status and the length of its body
    curl --disable --silent --insecure --globoff --noproxy '*' --proto '=http,https' --max-time 5 \
        --output /dev/null --write-out '%{http_code} %{size_download}' --url "$1" 8>&- 9>&- < /dev/null 2> /dev/null
}

reload_units() { # at boot, too: systemd has read them before they were put back
    changed_units=''
    for entry in "$journal"/[0-9]*; do
        read_entry "$entry" || continue
        case $real in /etc/systemd/* | /run/systemd/*) changed_units=yes ;; esac
    done
    [ -z "$changed_units" ] || ! has_systemd || systemctl daemon-reload 8>&- 9>&-
}
