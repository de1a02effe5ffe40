#!/bin/sh
# Keeps this machine restorable while tuner changes it: the originals, the watchdog, and the way back.
#
# It is installed as /var/lib/tuner/keeper and run as root: /bin/sh keeper STEP PURPOSE [ARGUMENT…]
#   arm run|apply PROGRAM_SUM                take the machine; what is to be known is on stdin
#   change run|apply SESSION HEAD SIZE       keep originals, then write; the request is on stdin
#   activate run|apply SESSION VERB NAME     check, restart or reload a service
#   activate run|apply SESSION units         let systemd read its units again
#   beat run SESSION NUMBER                  the controller is alive
#   restore run|apply session SESSION        put everything back, as the one who armed
#   restore run|apply hand CONTROLLER        put everything back, by hand
#   accept run|apply CONTROLLER              the same, and let go of what cannot be put back
#   adopt run|apply SUM SESSION HEAD SIZE    take the controller's copy of what this machine has lost; on stdin
#   confirm apply, undo apply                keep what was applied; take it back later
#   status run|apply, boot run|apply         what is going on; put files back after a reboot
#   watch run|apply, guard run|apply         the watchdog, and the process of it that counts
#   words run|apply PATH                     print the end of a server's log
# A step that came to its end says so in the last line of its answer; whatever lacks that line is no success.
#
# State of a purpose is in a directory beside this program:
#   journal/NUMBER/{meta,content}            an original; there (renamed, fsynced) before the first write
#   journal/NUMBER/after                     of a file: sums of what tuner put there, one a line (fsynced before)
#   journal/values                           how the kernel showed the settings after the last change
#   journal/NUMBER/foreign                   what somebody else wrote there meanwhile
#   journal/NUMBER/ours                      of a setting that somebody else has set: what it was before that
#   owner                                    who tunes; the first file to come and the last to go
#   session                                  there while changes are allowed, gone before anything is restored
#   sessions                                 all that ever began here; without an owner they are all done
#   beat, ticking                            the heartbeat; how the watchdog counts
#   services/NAME, urls                      what has to run and to answer as before
#   reserve                                  room for restoring on a full disk
#   confirmed, ended, restarted              the apply was confirmed; why the session ended; services are done
#   adopted                                  the session whose originals came back from the controller
# Of all purposes:
#   kept/TIME-PURPOSE                        originals that somebody has agreed to leave
# Needs util-linux (flock, setsid) and coreutils. Values are never read by a shell, except the lines of stop
# and start commands, which the controller quotes.
set -u
umask 077
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

PROTOCOL=2
BUSY=20 OTHER_VERSION=21 REFUSED=22 ENDED=23 INCOMPLETE=24 REJECTED=25 SERVICE_FAILED=26 FAILED=27 FOREIGN=28
newline='
'
twenty='1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20'
TEMPORARY=.tuner-new DISPLACED=.tuner-old
LOG_BYTES=1000000
RESERVE_KIB=256
SERVICE_TIMEOUT_S=90
WORDS_TIMEOUT_S=5
WORDS_BYTES=65536
READ_END='exec < "$1" && [ -f /proc/self/fd/0 ] && [ "$(stat -L -c %h /proc/self/fd/0)" = 1 ] &&
    [ "$(readlink "/proc/$$/fd/0")" = "$2" ] && exec tail -c "$3"'
SAID_BYTES=65536
SESSIONS=100
SYSTEMD_UNIT=/etc/systemd/system/tuner-restore.service
SYSTEMD_LINK=/etc/systemd/system/multi-user.target.wants/tuner-restore.service
CRON_FILE=/etc/cron.d/tuner-restore

# ------------------------------------------------------------------------------------------------- saying
log() {
    { printf '%s %s: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$purpose" "$*" >> "$home/log"; } 2> /dev/null
    return 0
}

fail() { # STATUS SENTENCE
    log "$2"
    printf '%s\n' "$2" >&2
    exit "$1"
}

shorten_log() {
    size=$(wc -c 2> /dev/null < "$home/log") || return 0
    [ "$size" -gt "$LOG_BYTES" ] || return 0
    tail -c "$((LOG_BYTES / 4))" "$home/log" > "$home/log.new" && mv -f "$home/log.new" "$home/log"
}

printable() { # TEXT: in one line
    printf '%s' "$1" | tr -c '[:print:]' ' '
}

last_words() { # FILE: what a command printed, in one line
    tail -n 3 "$1" 2> /dev/null | tr -c '[:print:]' ' '
}

describe_owner() {
    by='' study='' since='' controller=''
    while IFS= read -r line; do
        case $line in
            'by '*) by=${line#by } ;;
            'study '*) study=${line#study } ;;
            'since '*) since=${line#since } ;;
            'controller '*) controller=${line#controller } ;;
        esac
    done < "$state/owner"
    printf '%s, study %s, since %s' "$by" "$study" "$since"
}

# ------------------------------------------------------------------------------------------------- locking
take_lock() { # SECONDS; held until this process ends; 9 is closed for whatever outlives it
    # Opened for reading: that works on a file system that has become read-only, too.
    { true >> "$home/lock"; } 2> /dev/null
    [ -f "$home/lock" ] || fail "$FAILED" "$home: cannot be written. Look there."
    exec 9< "$home/lock" || exit "$FAILED"
    flock -w "$1" 9 || fail "$BUSY" "Another step is still at work after $1 s. Try again."
}

watchdog_lives() { # its processes hold this lock as long as one of them lives; askers share it
    ! flock -n -s "$state/watching" true
}

require_session() {
    armed=''
    { IFS= read -r armed < "$state/session"; } 2> /dev/null
    [ "$armed" = "$1" ] && return
    why=''
    { IFS= read -r why < "$state/ended"; } 2> /dev/null
    case $why in
        "$1 "*) why=${why#* } ;;
        *) why='it is not known here' ;;
    esac
    fail "$ENDED" "This session has ended ($why); nothing was changed. Look into $home/log, then begin again."
}

# --------------------------------------------------------------------------------------------------- paths
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
    case $1 in
        /proc/sys/* | /sys/*)
            real=$1
            [ -f "$real" ] || fail "$REFUSED" "$real: this kernel has no such setting. Leave it out."
            return
            ;;
    esac
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
    case $1 in
        /proc/sys/* | /sys/*) return 0 ;;
        *) return 1 ;;
    esac
}

enter() { # PATH → name: go into its directory, and be sure that no link was put in the way meanwhile
    name=./${1##*/}
    directory=${1%/*}
    CDPATH='' cd -P -- "${directory:-/}" && [ "$(pwd -P)" = "${directory:-/}" ]
}

sum_of() { # PATH: a word for what is there
    if [ -f "$1" ] && [ ! -L "$1" ]; then
        sha256sum < "$1"
    elif [ -e "$1" ] || [ -L "$1" ]; then
        echo other
    else
        echo absent
    fi
}

# ------------------------------------------------------------------------------------------------- journal
read_entry() { # ENTRY → real kind owner sum
    { IFS= read -r real && IFS= read -r kind && IFS= read -r owner && IFS= read -r sum; } < "$1/meta"
}

is_ours() { # [PATH], after read_entry: what is there is the original, or what tuner put
    found=$(sum_of "${1:-$real}")
    [ "$found" = "$sum" ] || grep -qsxF -e "$found" "$entry/after"
}

find_entry() { # REAL JOURNAL → entry
    wanted=$1
    for entry in "$2"/[0-9]*; do
        [ -e "$entry" ] && read_entry "$entry" && [ "$real" = "$wanted" ] && return
    done
    real=$wanted
    return 1
}

list_kept() { # → kept: all paths, one a line
    kept=$newline last_number=10000
    for entry in "$journal"/[0-9]*; do
        [ -e "$entry" ] || continue
        read_entry "$entry" || fail "$FAILED" "$entry: cannot be read. Look there."
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

copy_original() { # REAL: copy it with all attributes; print mode and owner
    exec 3< "$1" || return
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

# ------------------------------------------------------------------------------------------------- writing
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
            exec 3< "$3" && { [ "$3" = "$2" ] || [ "$(readlink /proc/self/fd/3)" = "$3" ]; } &&
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

overwrite() { # REAL SOURCE MODE UID GID: in the blocks that it has; for a full disk
    enter "$1" && [ -f "$name" ] && [ ! -L "$name" ] || return
    exec 4<> "$name" || return
    [ "$(readlink /proc/self/fd/4)" = "$1" ] && [ "$(stat -L -c %h /proc/self/fd/4)" = 1 ] || return
    # Half an original would be worse than none.
    [ "$(wc -c < "$2")" -le "$(($(stat -L -c '%b * %B' /proc/self/fd/4)))" ] || return
    dd if="$2" of=/proc/self/fd/4 bs=65536 conv=notrunc status=none &&
        truncate -s "$(wc -c < "$2")" /proc/self/fd/4 &&
        chown "$4:$5" /proc/self/fd/4 && chmod "$3" /proc/self/fd/4 && sync /proc/self/fd/4
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

# ----------------------------------------------------------------------------------------------- restoring
is_back() { # after read_entry
    case $kind in
        directory) [ ! -d "$real" ] || [ -n "$(ls -A -- "$real")" ] ;; # others may need it by now
        # The kernel forgot what a trial set. Of an apply, sysctl.d may have set it again at boot.
        setting) { [ "$purpose" = run ] && is_rebooted; } || { [ -f "$real" ] && [ "$(sha256sum < "$real")" = "$sum" ]; } ;;
        absent) [ ! -e "$real" ] && [ ! -L "$real" ] ;;
        file) [ "$(sum_of "$real")" = "$sum" ] && [ "$(stat -c '%a %u %g' -- "$real")" = "$owner" ] ;;
    esac
}

is_rebooted() {
    before=''
    { IFS= read -r before < "$state/boot_id"; } 2> /dev/null || return
    IFS= read -r boot < /proc/sys/kernel/random/boot_id && [ "$boot" != "$before" ]
}

is_foreign() { # ENTRY, after read_entry: what is there is known, and is not what tuner has written
    if [ "$kind" = setting ]; then
        case $foreign_values in *"$newline$real$newline"*) return 0 ;; esac
        [ ! -e "$1/foreign" ] || is_rebooted || return 0
        [ "$purpose" != run ] || return
    fi
    [ -s "$1/after" ] || return
    found=$(sum_of "$real")
    while IFS= read -r written; do
        [ "$written" != "$found" ] || return
    done < "$1/after"
}

is_not_foreign() { # [PATH], after read_entry: of a file
    is_ours "$@" || [ ! -s "$entry/after" ]
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
        setting) cat < "$1/content" > "$real" ;;
        absent) (remove "$real" is_not_foreign) ;;
        file)
            (replace "$real" "$1/content" "$1/content" is_not_foreign)
            case $? in
                0) ;;
                "$FOREIGN") return 1 ;; # the second attempt says so
                *)
                    rm -f "$1/after" && sync "$1" # killed in the middle, it would be taken for somebody else's
                    # shellcheck disable=SC2086 - three words
                    (overwrite "$real" "$1/content" $owner)
                    ;;
            esac
            ;;
    esac
}

clean_directory() { # REAL, after read_entry
    enter "$1" && clean
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
            else
                ! is_foreign "$entry" || foreign=$((foreign + 1))
                complain_at_last "$real" "${said:-it was written, and reads differently}; $(original_of "$entry")"
            fi
        done
        [ "$troubles" -gt 0 ] || break
    done
}

original_of() { # ENTRY, after read_entry
    case $kind in
        absent) echo 'it was not there before' ;;
        directory) echo 'it was made for tuner' ;;
        *) echo "its original is $1/content" ;;
    esac
}

complain_at_last() { # WHAT REASON
    if [ "$attempt" = 1 ]; then
        troubles=$((troubles + 1))
    else
        complain "$1" "$2"
    fi
}

complain() { # WHAT REASON
    troubles=$((troubles + 1))
    reason=$(printable "$2")
    log "NOT back: $1: $reason"
    printf 'trouble\t%s\t%s\n' "$1" "$reason"
}

warn() { # SENTENCE
    sentence=$(printable "$1")
    log "$sentence"
    printf 'warning\t%s\n' "$sentence"
}

is_read_only() { # DIRECTORY: only an attempt tells, for root may write everywhere
    case $( (
        cd -P -- "$1" && rm -f -- "$TEMPORARY" && set -C && true > "$TEMPORARY" && rm -f -- "$TEMPORARY"
    ) 2>&1) in
        *'Read-only file system'*) return 0 ;;
        *) return 1 ;;
    esac
}

read_service() { # FILE → systemd pid_file check stop start reload ran
    systemd=no pid_file='' check='' stop='' start='' reload='' ran=unknown
    while IFS= read -r line; do
        case $line in
            'systemd '*) systemd=${line#* } ;;
            'pid-file '*) pid_file=${line#* } ;;
            'check '*) check=${line#* } ;;
            'stop '*) stop=${line#* } ;;
            'start '*) start=${line#* } ;;
            'reload '*) reload=${line#* } ;;
            'ran '*) ran=${line#* } ;;
        esac
    done < "$1"
}

is_running() { # NAME, after read_service: 0 yes, 1 no, 2 cannot be told
    if [ "$systemd" = yes ]; then
        systemctl is-active --quiet -- "$1"
    elif [ -n "$pid_file" ]; then
        pid=''
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

run_apart() { # LINE: a command of the service, away from our locks and from what we set for ourselves
    (
        umask 022
        echo 0 > /proc/self/oom_score_adj
        exec timeout "$SERVICE_TIMEOUT_S" /bin/sh -c "$1"
    ) < /dev/null 8>&- 9>&-
}

run_line() { # LINE
    said=$state/said
    { true > "$said"; } 2> /dev/null || said=/dev/null
    run_apart "$1" > "$said" 2>&1
}

wait_until_stopped() {
    for _ in $twenty; do
        is_running "$service" || return
        sleep 0.5 8>&- 9>&-
    done
}

may_be_stopped() { # after read_service: what serves is not stopped unless it will start again
    reason=''
    if [ "$held" -gt 0 ]; then
        reason='it is restarted once everything else is back'
    elif [ -n "$pid_file" ] && is_read_only "${pid_file%/*}"; then
        reason="${pid_file%/*} is a read-only file system"
    elif ! can_read_files; then
        reason="what it needs cannot be read: $unreadable"
    elif [ "$systemd" = yes ] && ! is_loaded "$service"; then
        reason="its unit is $loaded"
    elif [ -n "$check" ] && ! run_line "$check"; then
        reason="its own check refuses the files as they are now: $(last_words "$said")"
    fi
    [ -n "$reason" ] || return 0
    unfinished=yes
    complain "$service" "it was left running with what it has: $reason"
    return 1
}

can_read_files() { # → unreadable: what is changed and its originals; a service that is stopped needs them
    set --
    for entry in "$journal"/[0-9]*; do
        [ -e "$entry" ] || continue
        [ ! -f "$entry/content" ] || set -- "$@" "$entry/content"
        read_entry "$entry" && ! is_setting "$real" && [ -f "$real" ] && set -- "$@" "$real"
    done
    unreadable=$(cat -- /dev/null "$@" 2>&1 > /dev/null 8>&- 9>&-)
}

is_loaded() { # UNIT → loaded: masked, not-found …
    loaded=$(systemctl show --property=LoadState --value -- "$1" 2> /dev/null 8>&- 9>&-)
    [ "$loaded" = loaded ]
}

restore_service() { # FILE RESTART
    service=${1##*/}
    read_service "$1"
    is_running "$service"
    running=$?
    if [ "$ran" = no ]; then
        [ "$running" = 0 ] || return
        run_line "$stop" || complain "$service" "it does not stop: $(last_words "$said")"
        return
    fi
    if [ "$running" != 1 ]; then
        [ "$2" = yes ] && may_be_stopped || return
    fi
    run_line "$stop"
    # A stop may come back early; and systemd starts nothing that failed too often.
    wait_until_stopped
    [ "$systemd" = no ] || systemctl reset-failed -- "$service" 2> /dev/null
    if ! run_line "$start"; then
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

ask() { # URL: print its status
    curl --disable --silent --insecure --globoff --noproxy '*' --proto '=http,https' --max-time 5 \
        --output /dev/null --write-out '%{http_code}' --url "$1" 8>&- 9>&- < /dev/null 2> /dev/null
}

restore_answers() {
    [ -e "$state/urls" ] || return
    while IFS=' ' read -r expected url; do
        for _ in 1 2 3 4 5 6; do
            status=$(ask "$url")
            [ "$status" = "$expected" ] && break
            sleep 0.5 8>&- 9>&-
        done
        case $status in
            "$expected") ;;
            000) complain "$url" 'it does not answer' ;;
            # A page changes for many reasons, and what tuner has changed is back.
            *) warn "$url answers $status, and $expected before." ;;
        esac
    done < "$state/urls"
}

reload_units() { # at boot, too: systemd has read them before they were put back
    changed_units=''
    for entry in "$journal"/[0-9]*; do
        [ -e "$entry" ] && read_entry "$entry" || continue
        case $real in /etc/systemd/* | /run/systemd/*) changed_units=yes ;; esac
    done
    if [ -n "$changed_units" ] && has_systemd; then
        systemctl daemon-reload 8>&- 9>&-
    fi
}

restore_services() { # RESTART → unfinished: whether a service still has to be restarted
    held=$((troubles - foreign)) unfinished=no
    for file in "$state/services"/*; do
        [ -e "$file" ] && restore_service "$file" "$1"
    done
    [ "$held" -gt 0 ] || restore_answers
}

restore_all() { # WHY: under the lock; any time again, wherever it was killed
    if [ -e "$state/confirmed" ]; then
        finish_confirm
        return
    fi
    session=''
    { read -r session < "$state/session"; } 2> /dev/null &&
        { printf '%s %s\n' "$session" "$1" > "$state/ended" && sync "$state/ended"; } 2> /dev/null
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
    restart=no
    if [ -n "$entries" ] && [ ! -e "$state/restarted" ]; then
        restart=yes
    fi
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

finish() { # the journal goes first, the owner last; killed in between, it is done again
    if [ -d "$journal" ]; then
        rm -rf "$state/journal.done"
        mv -T "$journal" "$state/journal.done" && sync "$state"
    fi
    if [ -e "$SYSTEMD_UNIT" ] && rm -f "$SYSTEMD_UNIT" "$SYSTEMD_LINK" && has_systemd; then
        systemctl daemon-reload 8>&- 9>&- # or it would still list the unit
    fi
    rm -f "$CRON_FILE"
    end_watchdog
    rm -rf "$state/journal.done" "$state/services"
    rm -f "$state/urls" "$state/ticking" "$state/beat" "$state/boot_id" "$state/said" "$state/restarted" \
        "$state/confirmed" "$state/reserve" "$state/session" "$state/plan" "$state"/incoming.*
    rm -f "$state/owner" "$state/adopted"
    sync "$state"
}

is_finished() { # SESSION, when it is not the one that has this machine
    { while read -r line; do [ "$line" != "$1" ] || return 0; done < "$state/sessions"; } 2> /dev/null
    return 1
}

give_up() { # move what is not back to where nobody looks for work, and say where
    kept=$home/kept/$(date -u +%Y%m%dT%H%M%SZ)-$purpose-$$
    mkdir -p "$kept" || fail "$FAILED" "$kept: cannot be made, so nothing was given up. Look there."
    for entry in "$journal"/[0-9]*; do
        [ -e "$entry" ] || continue
        real=$entry kind=unknown
        read_entry "$entry" && is_back && continue
        mv -T "$entry" "$kept/${entry##*/}" || fail "$FAILED" "$entry: cannot be moved to $kept. Look there."
        log "given up: $real; what is known of it is in $kept/${entry##*/}"
        printf 'kept\t%s\t%s\n' "$real" "$kept/${entry##*/}"
    done
    sync "$kept" "$home/kept" "$home" "$journal"
    rmdir "$kept" 2> /dev/null
    finish
    log 'let go, as agreed'
}

# ------------------------------------------------------------------------------------------------ watchdog
has_systemd() {
    [ -d /run/systemd/system ] && command -v systemctl > /dev/null
}

start_watchdog() {
    watchdog_lives && return
    if has_systemd && systemd-run --quiet --collect --unit="tuner-watchdog-$purpose" \
        --property=Restart=on-failure --property=RestartSec=1 --property=StartLimitIntervalSec=0 \
        --property=KillMode=process --property=OOMScoreAdjust=-1000 \
        /bin/sh "$program" watch "$purpose" < /dev/null > /dev/null 2>&1 9>&-; then
        :
    else
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
    while :; do
        /bin/sh "$program" guard "$purpose" && break
        log 'the watchdog was killed; it goes on'
        sleep 1 8>&-
    done
    trap - EXIT
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
    read -r tick_s ticks retry_s < "$state/ticking" || ticks=''
    quiet=0 seen=''
    while [ -n "$ticks" ] && [ -e "$state/owner" ]; do
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
    beat='' session=''
    { read -r beat < "$state/beat"; read -r session < "$state/session"; } 2> /dev/null
    heard="$session $beat"
}

fire() { # in a process of its own: the lock ends with it
    take_lock 300
    [ -e "$state/session" ] || return
    look_at_heart
    [ "$heard" = "$seen" ] || return # it came in the last moment
    case $purpose in
        apply) restore_all 'it was not confirmed in time' ;;
        *) restore_all "no heartbeat of the controller for $ticks ticks of $tick_s s" ;;
    esac > /dev/null
}

restore_again() {
    take_lock 300
    [ -e "$state/owner" ] && [ ! -e "$state/session" ] && restore_all 'trying again' > /dev/null
}

# --------------------------------------------------------------------------------------------------- steps
arm() { # PROGRAM_SUM
    mkdir -p "$state"
    chmod 0700 "$home" "$state" "$program"
    request=$state/arming.$$
    trap 'rm -f "$request"' EXIT
    cat > "$request" && [ "$(tail -n 1 "$request")" = end ] ||
        fail "$REFUSED" 'The request was cut off. Try again.'
    take_lock 30
    refuse_others
    sum=$(sha256sum < "$program")
    [ "${sum%% *}" = "$1" ] || fail "$OTHER_VERSION" 'This is another version of the keeper. Install yours.'
    shorten_log
    wait_for_watchdog_end
    if ! write_plan; then
        finish
        fail "$FAILED" "$state: cannot be written ($(df -h "$state" | tail -n 1)). Make room."
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
        elif watchdog_lives && [ -e "$state/session" ] && [ "$other" = apply ]; then
            fail "$BUSY" "An apply waits for \`tuner confirm\`: $(describe_owner). Confirm or restore it."
        elif watchdog_lives && [ -e "$state/session" ]; then
            fail "$BUSY" "Another tuner is at work: $(describe_owner). Wait for its end, or end it."
        else
            owner=$(describe_owner)
            fail "$BUSY" "Originals of a dead tuner are not back: $owner. Run \`tuner restore\` here."
        fi
    done
    state=$home/$purpose
}

write_plan() { # what the request says, on disk
    rm -rf "$state/services" "$state/urls" "$journal" "$state/confirmed" "$state/restarted" "$state/ended"
    for old in "$state"/arming.*; do
        [ "$old" = "$request" ] || rm -f "$old"
    done
    mkdir "$state/services" "$journal" || return
    true > "$state/owner" || return
    session='' file=''
    while IFS= read -r line; do
        value=${line#* }
        case $line in
            'session '*) session=$value ;;
            'by '* | 'controller '* | 'study '*) printf '%s\n' "$line" >> "$state/owner" ;;
            'ticking '*) printf '%s\n' "$value" > "$state/ticking" ;;
            'service '*)
                case $value in
                    .* | -* | *[!A-Za-z0-9@_.:-]*)
                        fail "$REFUSED" "$value: is not a name of a service. Correct it."
                        ;;
                esac
                file=$state/services/$value
                ;;
            'systemd '* | 'pid-file '* | 'check '* | 'stop '* | 'start '* | 'reload '*)
                printf '%s\n' "$line" >> "$file"
                ;;
            'url '*) write_url "$value" ;;
            end) ;;
            *) fail "$REFUSED" 'The request has a line that is not known.' ;;
        esac || return
    done < "$request"
    case $session in '' | *[!0-9a-f]*) fail "$REFUSED" 'The request has no session.' ;; esac
    printf 'since %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >> "$state/owner"
    { tail -n "$SESSIONS" "$state/sessions" 2> /dev/null; printf '%s\n' "$session"; } > "$state/sessions.new" &&
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

write_url() {
    if ! command -v curl > /dev/null; then
        printf 'warning\tthere is no curl: after a restore nobody asks whether the server answers.\n'
        return 0
    fi
    status=$(ask "$1")
    if [ "$status" = 000 ]; then
        printf 'warning\t%s does not answer, so it cannot be asked after a restore.\n' "$1"
    else
        printf '%s %s\n' "$status" "$1" >> "$state/urls"
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
}

wait_until_settled() { # NAME: what is just starting would be taken for stopped, and stopped in the end
    for _ in $twenty $twenty; do
        unit_state=$(systemctl is-active -- "$1")
        case $unit_state in activating | deactivating) sleep 0.5 9>&- ;; *) return ;; esac
    done
    finish
    fail "$REFUSED" "$1: is still $unit_state after 20 s. Wait until it has started, or see why it does not."
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
            printf 'ExecStart=/bin/sh %s boot %s\n' "$program" "$purpose"
            printf '[Install]\nWantedBy=multi-user.target\n'
        } > "$SYSTEMD_UNIT" && chmod 0644 "$SYSTEMD_UNIT" && ln -sf "$SYSTEMD_UNIT" "$SYSTEMD_LINK" &&
            sync "$SYSTEMD_UNIT" "${SYSTEMD_UNIT%/*}" "${SYSTEMD_LINK%/*}" && return
    elif [ -d "${CRON_FILE%/*}" ] && { command -v cron || command -v crond; } > /dev/null; then
        printf '@reboot root if grep -q ^main %s; then /bin/sh %s boot %s; else echo %s is damaged; fi\n' \
            "$program" "$program" "$purpose" "$program" > "$CRON_FILE" &&
            chmod 0644 "$CRON_FILE" && sync "$CRON_FILE" "${CRON_FILE%/*}" && return
    fi
    printf 'warning\tnothing guards a reboot here (no systemd, no cron): after one, run tuner restore.\n'
}

change() { # SESSION HEAD_BYTES SIZE: the request says what to do, line by line, then come the contents
    require_number "$2"
    require_number "$3"
    request=$state/incoming.$$
    trap 'rm -f "$request" "$request".*' EXIT
    { cat > "$request" && head -c "$2" "$request" > "$request.head"; } ||
        fail "$FAILED" "$state: has no room for the request, so nothing was changed. Make room."
    [ "$(wc -c < "$request")" -eq "$3" ] || fail "$REFUSED" 'The request was cut off, so nothing was changed.'
    take_lock 30
    require_session "$1"
    list_kept
    refuse_foreign_values
    offset=$2
    while IFS= read -r line <&5; do
        case $line in
            'set '*)
                IFS= read -r value <&5
                set_value "${line#* }" "$value"
                ;;
            'put '*)
                line=${line#* }
                size=${line%% *} line=${line#* }
                require_number "$size"
                tail -c "+$((offset + 1))" "$request" | head -c "$size" > "$request.content"
                offset=$((offset + size))
                asked=${line#* }
                put_content "$asked" "${line%% *}" "$request.content"
                ;;
            'back '*)
                asked=${line#* }
                put_back "$asked"
                ;;
            *) fail "$REFUSED" 'The request has a line that is not known.' ;;
        esac
    done 5< "$request.head"
    note_values
}

require_number() {
    case $1 in '' | *[!0-9]*) fail "$REFUSED" 'The request has no number where it must. Try again.' ;; esac
}

set_value() { # PATH VALUE
    resolve "$1"
    is_setting "$real" || fail "$REFUSED" "$real: is not a setting of the kernel."
    [ -w "$real" ] || fail "$REFUSED" "$real: may not be written here. Leave it out."
    keep_original "$real" 2> "$request.said" || refuse_unkept
    if ! { printf '%s\n' "$2" > "$real"; } 2> /dev/null; then
        refused=$real
        note_values
        fail "$REJECTED" "$refused: the kernel refused '$2'. Correct its range."
    fi
    log "set $real to $2"
}

put_content() { # PATH EXPECTED SOURCE: EXPECTED is the sum of the original that the new content was made of
    resolve "$1"
    is_setting "$real" && fail "$REFUSED" "$real: takes a value of one line."
    keep_original "$real" 2> "$request.said" || refuse_unkept
    find_entry "$real" "$journal" || fail "$FAILED" "$real: its original is not there. Look into $journal."
    if [ "${sum%% *}" != "$2" ]; then
        printf 'foreign\t%s\n' "$asked"
        fail "$REFUSED" "$(printf '%s: %s. %s' "$real" \
            "somebody else changed it: it has the SHA-256 ${sum%% *}, where tuner had read $2" \
            'It was not overwritten. Begin again.')"
    fi
    # Before it is there: after a power cut in between, what is there must be known as tuner's.
    { sha256sum < "$3" >> "$entry/after" && sync "$entry/after" "$entry"; } 2> "$request.said" || refuse_unkept
    like=new
    [ ! -e "$real" ] || like=$real
    said=$(replace "$real" "$3" "$like" is_ours 2>&1)
    case $? in
        0) log "put $real" ;;
        "$FOREIGN") refuse_foreign ;;
        *) fail "$REFUSED" "$real: cannot be written: $(printable "$said"). Look there." ;;
    esac
}

refuse_foreign() { # after read_entry: nothing is overwritten, and both versions are kept
    kept_in=''
    if [ -s "$entry/foreign" ]; then
        kept_in=" What was there meanwhile is in $entry/foreign."
    elif [ -f "$real" ] && copy "$real" "$entry/foreign" 2> /dev/null && sync "$entry/foreign" "$entry"; then
        kept_in=" What is there now is also in $entry/foreign."
    fi
    [ "$kind" != file ] || kept_in="$kept_in The original of before is in $entry/content."
    printf 'foreign\t%s\n' "$asked"
    fail "$REFUSED" "$(printf '%s: %s.%s %s' "$real" \
        'somebody else changed it while tuner was at work, so it was not overwritten' "$kept_in" \
        'Keep what you need of both, then run: tuner restore')"
}

show_values() { # of all settings that were ever changed; one grep, for the kernel gives a value in one read only
    set --
    for entry in "$journal"/[0-9]*; do
        [ -e "$entry" ] && read_entry "$entry" && [ "$kind" = setting ] && set -- "$@" "$real"
    done
    [ "$#" = 0 ] || grep -s '' /dev/null "$@"
}

note_values() { # as the kernel shows them: it may round what it is given, and one may change another
    { show_values > "$journal/values"; } 2> /dev/null || rm -f "$journal/values"
}

mark_foreign_values() { # → foreign_values; before anything is restored, for one setting may change another
    foreign_values=$newline
    if [ -s "$journal/values" ] && ! is_rebooted && differing=$(show_values | grep -vxF -f "$journal/values"); then
        for entry in "$journal"/[0-9]*; do
            [ -e "$entry" ] && read_entry "$entry" && [ "$kind" = setting ] || continue
            case $newline$differing in *"$newline$real:"*) is_back || mark_foreign_value ;; esac
        done
    fi
    rm -f "$journal/values" # killed in the middle, what is put back would be taken for somebody else's
}

mark_foreign_value() { # after read_entry; on a disk that cannot be written foreign_values alone knows it
    foreign_values=$foreign_values$real$newline
    ours=$(grep -F "$real:" "$journal/values")
    { printf '%s\n' "${ours#"$real:"}" > "$entry/ours" && cat < "$real" > "$entry/foreign"; } 2> /dev/null
}

refuse_foreign_values() { # before anything is changed
    [ -s "$journal/values" ] || return 0
    if ! foreign=$(show_values | grep -vxF -f "$journal/values"); then
        rm -f "$journal/values" # killed in the middle, tuner's own would be taken for somebody else's
        return
    fi
    fail "$REFUSED" "$(printf '%s: %s. %s' "$(printable "$foreign")" \
        "somebody else set that while tuner was at work, where it was $(printable "$(cat "$journal/values")")" \
        'Nothing was changed. End what sets it, then run: tuner restore')"
}

refuse_unkept() {
    said=$(last_words "$request.said")
    fail "$REFUSED" "$real: its original cannot be kept ($said), so it was not changed. Look there."
}

put_back() { # PATH
    resolve "$1"
    find_entry "$real" "$journal" || return 0
    is_back && return
    case $kind in file | absent) is_ours || refuse_foreign ;; esac
    said=$(bring_back "$entry" 2>&1)
    if ! is_back; then
        case $kind in file | absent) is_ours || refuse_foreign ;; esac
        fail "$INCOMPLETE" "$real: cannot be put back: $(printable "$said"). Look there."
    fi
    log "put back $real"
}

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
                fail "$REFUSED" "$3: its unit is $loaded, so it was left running. Look there, then begin again."
            can_read_files || fail "$REFUSED" "$3: was left running: $(printable "$unreadable"). Look there."
            serve stop "$stop" && serve start "$start"
            ;;
        *) fail "$REFUSED" "$2: is nothing that a service can be told." ;;
    esac
    ended=$?
    exec 9>&- # whoever listens may be slow
    printf 'ran\t%s\t%s\n' "$verb" "$ended"
    say_lines out "$out"
    say_lines err "$err"
    [ "$ended" = 0 ] || return "$SERVICE_FAILED"
}

serve() { # VERB LINE
    verb=$1
    [ -n "$2" ] || fail "$REFUSED" "The service has no command to $1."
    run_apart "$2" > "$out" 2> "$err"
}

say_lines() { # WORD FILE
    [ -s "$2" ] || return 0
    tail -c "$SAID_BYTES" "$2" | while IFS= read -r line || [ -n "$line" ]; do
        printf '%s\t%s\n' "$1" "$line"
    done
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

restore() { # session SESSION | hand CONTROLLER
    if [ "$1" = hand ]; then
        require_quiet "$2"
        why='asked by hand'
    else
        why='the tuner is done'
    fi
    take_lock 300
    armed=''
    { IFS= read -r armed < "$state/session" || IFS=' ' read -r armed _ < "$state/ended"; } 2> /dev/null
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
            fail "$BUSY" "A tuner is at work: $(describe_owner). End it there: it puts everything back."
    done
}

accept() { # CONTROLLER
    require_quiet "$1"
    take_lock 300
    if [ ! -e "$state/owner" ]; then
        echo nothing
        return 0
    fi
    restore_all 'asked by hand, and to let go of what cannot be put back' || give_up
}

adopt() { # PROGRAM_SUM SESSION HEAD_BYTES SIZE: the plan and what is known of originals, then their contents
    require_number "$3"
    require_number "$4"
    case $2 in '' | *[!0-9a-f]*) fail "$REFUSED" 'The request has no session.' ;; esac
    sum=$(sha256sum < "$program")
    [ "${sum%% *}" = "$1" ] || fail "$OTHER_VERSION" 'This is another version of the keeper. Install yours.'
    mkdir -p "$state" && chmod 0700 "$home" "$state" "$program" || fail "$FAILED" "$state: cannot be made."
    request=$state/incoming.$$
    trap 'rm -f "$request" "$request".*' EXIT
    { cat > "$request" && head -c "$3" "$request" > "$request.head"; } ||
        fail "$FAILED" "$state: has no room for the originals. Make room."
    [ "$(wc -c < "$request")" -eq "$4" ] || fail "$REFUSED" 'The request was cut off. Try again.'
    take_lock 300
    adopted='' armed=''
    { IFS= read -r armed < "$state/session" || IFS=' ' read -r armed _ < "$state/ended"; } 2> /dev/null
    if [ -e "$state/owner" ]; then
        { IFS= read -r adopted < "$state/adopted"; } 2> /dev/null
    fi
    if [ -e "$state/owner" ] && [ "$armed" = "$2" ] && [ "$adopted" != "$2" ]; then
        echo present
        return 0
    fi
    if [ "$adopted" != "$2" ]; then
        if is_finished "$2"; then
            echo nothing
            return 0
        fi
        refuse_others # the other purpose, too
        adopt_plan "$2"
    fi
    adopt_originals "$3"
    guard_reboot
    start_watchdog
    log "has adopted the originals of $(describe_owner)"
    echo adopted
}

adopt_plan() { # SESSION: there is no session open, so nothing is changed any more, only restored
    rm -rf "$state/services" "$state/urls" "$journal" "$state/confirmed" "$state/restarted" "$state/ended" \
        "$state/session"
    printf '%s adopted from the controller\n' "$1" > "$state/ended"
    mkdir "$state/services" "$journal" && true > "$state/plan" || fail "$FAILED" "$state: has no room."
    file=''
    while IFS= read -r line; do
        value=${line#* }
        case $line in
            'by '* | 'controller '* | 'study '* | 'since '*) printf '%s\n' "$line" >> "$state/plan" ;;
            'ticking '*) printf '%s\n' "$value" > "$state/ticking" ;;
            'boot '*) printf '%s\n' "$value" > "$state/boot_id" ;;
            'service '*)
                case $value in
                    .* | -* | *[!A-Za-z0-9@_.:-]*) fail "$REFUSED" "$value: is not a name of a service." ;;
                esac
                file=$state/services/$value
                ;;
            'systemd '* | 'pid-file '* | 'check '* | 'stop '* | 'start '* | 'reload '* | 'ran '*)
                printf '%s\n' "$line" >> "$file"
                ;;
            'answered '*) printf '%s\n' "$value" >> "$state/urls" ;;
        esac || fail "$FAILED" "$state: has no room."
    done < "$request.head"
    [ -s "$state/ticking" ] || fail "$REFUSED" 'The request has no plan.'
    sync "$state"/services/* "$state/services" "$state/plan" "$state/ticking" "$state/ended" "$journal" 2> /dev/null
    printf '%s\n' "$1" > "$state/adopted" && sync "$state/adopted" &&
        mv -fT "$state/plan" "$state/owner" && printf '%s\n' "$1" >> "$state/sessions" &&
        sync "$state/sessions" "$state" "$home" || fail "$FAILED" "$state: has no room."
}

adopt_originals() { # HEAD_BYTES
    list_kept
    offset=$1 written=''
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
        esac || fail "$FAILED" "$value: its original cannot be kept. Look into $journal."
        written=''
    done 5< "$request.head"
}

take_content() { # SIZE → the next of the contents is in $request.content
    require_number "$1"
    tail -c "+$((offset + 1))" "$request" | head -c "$1" > "$request.content"
    offset=$((offset + $1))
    [ "$(wc -c < "$request.content")" -eq "$1" ] || fail "$FAILED" "$state: has no room for the originals."
}

adopt_entry() { # KIND OWNER PATH; entries that exist are never overwritten
    check_path "$3"
    real=$3
    # What does not exist any more keeps its name: it is told when it cannot be put back.
    ! (resolve "$3") > /dev/null 2>&1 || resolve "$3"
    case $kept in *"$newline$real$newline"*) return 0 ;; esac
    rm -rf "$journal/new"
    mkdir "$journal/new" || return
    [ -z "$written" ] || printf '%s' "$written" > "$journal/new/after" || return
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

tell_plan() { # the controller keeps it as well
    for file in "$state/services"/*; do
        [ -e "$file" ] && read_service "$file" && printf 'ran\t%s %s\n' "${file##*/}" "$ran"
    done
    { while IFS= read -r line; do printf 'answered\t%s\n' "$line"; done < "$state/urls"; } 2> /dev/null
    { IFS= read -r line < "$state/boot_id" && printf 'boot\t%s\n' "$line"; } 2> /dev/null
    describe_owner > /dev/null
    printf 'since\t%s\n' "$since"
}

confirm() {
    take_lock 300
    if [ ! -e "$state/session" ] && [ ! -e "$state/confirmed" ]; then
        why=''
        { IFS= read -r why < "$state/ended"; } 2> /dev/null
        fail "$ENDED" "Nothing waits to be confirmed${why:+ (${why#* })}. Run: tuner apply"
    fi
    true > "$state/confirmed" && sync "$state/confirmed" "$state" ||
        fail "$FAILED" "$state: cannot be written, so it is not confirmed. Make room, and confirm again."
    finish_confirm
    log 'confirmed'
}

finish_confirm() { # the originals of the first apply stay, for `undo`
    session=''
    { read -r session < "$state/session"; } 2> /dev/null &&
        printf '%s it was confirmed\n' "$session" > "$state/ended" && sync "$state/ended"
    rm -f "$state/session"
    mkdir -p "$home/applied/journal" "$home/applied/services"
    for source in "$journal"/[0-9]*; do
        [ -e "$source" ] && read_entry "$source" || continue
        applied=$(sum_of "$real")
        if find_entry "$real" "$home/applied/journal"; then
            printf '%s\n' "$applied" > "$entry/after"
            rm -rf "$source"
        else
            printf '%s\n' "$applied" > "$source/after"
            number=$(ls "$home/applied/journal" | tail -n 1)
            sync "$source/after" "$source"
            mv -T "$source" "$home/applied/journal/$((${number:-10000} + 1))"
        fi
    done
    for file in "$state/services"/*; do
        [ ! -e "$file" ] || mv -f "$file" "$home/applied/services/"
    done
    sync "$home/applied/journal" "$home/applied/services" "$home/applied" "$journal"
    finish
}

undo() {
    take_lock 300
    refuse_others
    state=$home/applied journal=$home/applied/journal
    if [ ! -d "$journal" ]; then
        echo nothing
        return 0
    fi
    log 'undoing what was applied'
    restore_files
    reload_units
    restore_services yes
    if [ "$troubles" -gt 0 ]; then
        return "$INCOMPLETE"
    fi
    rm -rf "$state"
    sync "$home"
    log 'what was applied is undone'
}

status() {
    if [ -e "$state/owner" ]; then
        printf 'owner\t%s\n' "$(describe_owner)"
        [ ! -e "$state/session" ] || printf 'session\topen\n'
        watchdog_lives && printf 'watchdog\talive\n'
        for entry in "$journal"/[0-9]*; do
            [ ! -e "$entry" ] || { read_entry "$entry" && printf 'kept\t%s\n' "$real"; }
        done
    fi
    [ ! -d "$home/applied/journal" ] || printf 'applied\t%s\n' "$(ls "$home/applied/journal" | wc -l)"
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

words() { # PATH: whoever may write beside a log may put a link or a pipe in its place
    check_path "$1"
    directory=$(readlink -f -- "${1%/*}/") && cd -P -- "$directory" ||
        fail "$REFUSED" "$1: its directory is not there. Look there."
    [ -f "./${1##*/}" ] && [ ! -L "./${1##*/}" ] ||
        fail "$REFUSED" "$1: is not a file of its own (a link, a pipe or a device?), so it is not read."
    # What was opened counts, not what was looked at; opening a pipe would wait, so that has its time.
    timeout -s KILL "$WORDS_TIMEOUT_S" /bin/sh -c "$READ_END" read "./${1##*/}" "${directory%/}/${1##*/}" \
        "$WORDS_BYTES" || fail "$REFUSED" "$1: has several names, or was exchanged while it was opened, so it is not read."
    exit 0 # the log alone is the answer, without a last line of ours
}

main() {
    step=${1-} purpose=${2-}
    case $0 in
        /*/*) home=${0%/*} program=$0 ;;
        *) echo 'Run the keeper by its absolute path.' >&2; exit "$REFUSED" ;;
    esac
    case $purpose in
        run | apply) ;;
        *) echo 'Run the keeper as: keeper STEP run|apply …' >&2; exit "$REFUSED" ;;
    esac
    state=$home/$purpose journal=$home/$purpose/journal foreign_values=''
    cd / || exit "$FAILED"
    # The connection may break at any moment; what was begun is brought to its end.
    trap : HUP PIPE INT
    shift 2
    case $step in
        arm | change | activate | beat | restore | accept | adopt) "$step" "$@" ;;
        confirm | undo | status | boot | watch | guard | nap | words) "$step" "$@" ;;
        *) echo "The keeper has no step $step." >&2; exit "$REFUSED" ;;
    esac
    ended=$?
    case $ended in
        0 | "$INCOMPLETE" | "$SERVICE_FAILED") printf 'end\t%s\n' "$PROTOCOL" || ended=$FAILED ;;
    esac
    exit "$ended"
}

main "$@"
