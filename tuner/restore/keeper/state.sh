#!/bin/sh
# Keeps this machine restorable while tuner changes it: the originals, the watchdog, and the way back.
#
# It is installed as /var/lib/tuner/keeper and run as root: /bin/sh keeper STEP PURPOSE [ARGUMENT…]
#   arm run|apply PROGRAM_SUM                take the machine; what is to be known is on stdin
#   change run|apply SESSION HEAD SIZE       keep originals, then write; the request is on stdin
#   activate run|apply SESSION VERB NAME     check, restart or reload a service
#   activate run|apply SESSION units         let systemd read its units again
#   beat run|apply SESSION NUMBER            the controller is alive
#   restore run|apply session SESSION        put everything back, as the one who armed
#   restore run|apply hand CONTROLLER        put everything back, by hand
#   accept run|apply CONTROLLER              the same, and let go of what cannot be put back
#   adopt run|apply SUM SESSION HEAD SIZE    take the controller's copy of what this machine has lost; on stdin
#   ready apply SESSION TICK TICKS RETRY     what was applied is active: wait for confirm, not for the controller
#   confirm apply, applied apply SUM         keep what was applied; say what was, and what changed since
#   undo apply WHICH [accept]                take it back; accept: leave what somebody has changed since
#   knows run|apply SESSION                  whether that session began here
#   status run|apply, boot run|apply         what is going on; put files back after a reboot
#   watch run|apply, guard run|apply         the watchdog, and the process of it that counts
#   words run|apply PATH                     print the end of a server's log
# A step that came to its end says so in the last line of its answer; whatever lacks that line is no success.
#
# State of a purpose is in a directory beside this program:
#   journal/NUMBER/{meta,content}            an original; there (renamed, fsynced) before the first write
#   journal/NUMBER/after                     of a file: sums of what tuner put there, one a line (fsynced before)
#   journal/values                           how the kernel showed the settings after the last change
#   journal/NUMBER/overwriting               the same, while the original is written in place
#   journal/NUMBER/foreign                   what somebody else wrote there meanwhile
#   journal/NUMBER/ours                      of a setting that somebody else has set: what it was before that
#   owner                                    who tunes; the first file to come and the last to go
#   session                                  there while changes are allowed, gone before anything is restored
#   sessions                                 all that ever began here; without an owner they are all done
#   beat, ticking                            the heartbeat; how the watchdog counts
#   services/NAME, urls                      what has to run and to answer as before
#   reserve                                  room for restoring on a full disk
#   ready, confirmed, ended, restarted       the apply is active; was confirmed; why the session ended; services are done
#   adopted                                  the session whose originals came back from the controller
# Of all purposes:
#   applied/NUMBER                           what was confirmed: its journal, services, urls and owner, each apply's own
#   kept/TIME-PURPOSE                        originals that somebody has agreed to leave
# Needs util-linux (flock, setsid) and coreutils. Values are never read by a shell, except the lines of stop
# and start commands, which the controller quotes.
set -u
umask 077
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

PROTOCOL=2
BUSY=20 OTHER_VERSION=21 REFUSED=22 ENDED=23 INCOMPLETE=24 REJECTED=25 SERVICE_FAILED=26 FAILED=27 FOREIGN=28 CHANGED=29
newline='
'
twenty='1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20'
TEMPORARY=.tuner-new DISPLACED=.tuner-old # of no session: see require_session and restore_all
LOG_BYTES=1000000
RESERVE_KIB=256
SERVICE_TIMEOUT_S=90
RESTART_TIMEOUT_S=180
DEPENDENTS=RequiredBy,RequisiteOf,BoundBy,ConsistsOf,PropagatesStopTo,TriggeredBy
WORDS_TIMEOUT_S=5
WORDS_BYTES=65536
READ_END='exec < "$1" && [ -f /proc/self/fd/0 ] && [ "$(stat -L -c %h /proc/self/fd/0)" = 1 ] &&
    [ "$(readlink "/proc/$$/fd/0")" = "$2" ] && exec tail -c "$3"'
# A limit that cannot be set here keeps nothing from starting.
ENTER='for file in $1; do echo $$ > "$file"; done; for limit in $2; do prlimit --pid $$ "$limit"; done 2> /dev/null
    shift 2; exec "$@"'
TRY_LIMITS='for limit; do prlimit --pid $$ "$limit" 2> /dev/null || echo "$limit"; done'
SAID_BYTES=65536
FOUND='ran\|along\|directory\|mask\|limits\|groups\|ids\|environment'
SYSTEMD_UNIT=/etc/systemd/system/tuner-restore.service
SYSTEMD_LINK=/etc/systemd/system/multi-user.target.wants/tuner-restore.service
CRON_FILE=/etc/cron.d/tuner-restore

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

read_word() { # NAME FILE: the first line of a file becomes that variable; without a file it is empty
    eval "$1=''"
    { IFS= read -r "$1" < "$2"; } 2> /dev/null
}

printable() { # TEXT: in one line
    printf '%s' "$1" | tr -c '[:print:]' ' '
}

last_words() { # FILE: what a command printed, in one line
    tail -n 3 "$1" 2> /dev/null | tr -c '[:print:]' ' '
}

warn() { # SENTENCE
    sentence=$(printable "$1")
    log "$sentence"
    printf 'warning\t%s\n' "$sentence"
}

complain() { # WHAT REASON
    troubles=$((troubles + 1))
    reason=$(printable "$2")
    log "NOT back: $1: $reason"
    printf 'trouble\t%s\t%s\n' "$1" "$reason"
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

take_lock() { # SECONDS; held until this process ends; 9 is closed for whatever outlives it
    # Opened for reading: that works on a file system that has become read-only, too.
    { true >> "$home/lock"; } 2> /dev/null
    [ -f "$home/lock" ] || fail "$FAILED" "$home: cannot be written. Check this path."
    exec 9< "$home/lock" || exit "$FAILED"
    flock -w "$1" 9 || fail "$BUSY" "Another step is still at work after $1 s. Try again."
}

watchdog_lives() { # its processes hold this lock as long as one of them lives; askers share it
    ! flock -n -s "$state/watching" true
}

require_session() {
    read_word armed "$state/session"
    if [ "$armed" = "$1" ]; then
        name_displaced
        return
    fi
    read_word why "$state/ended"
    case $why in
        "$1 "*) why=${why#* } ;;
        *) why='it is not known here' ;;
    esac
    fail "$ENDED" "This session has ended ($why); nothing was changed. Read $home/log, then run the command again."
}

require_program() { # SUM
    sum=$(sha256sum < "$program")
    [ "${sum%% *}" = "$1" ] || fail "$OTHER_VERSION" 'This is another version of the restore agent. Install yours.'
}

require_number() {
    case $1 in '' | *[!0-9]*) fail "$REFUSED" 'The request has no number where it must. Try again.' ;; esac
}

read_session() { # → armed: the session that is open, or has ended last
    read_word armed "$state/session" || read_word armed "$state/ended"
    armed=${armed%% *}
}

name_displaced() { # → DISPLACED: of this session alone; one of that name was there before it is somebody else's
    DISPLACED=.tuner-old-${armed:-0}
}

receive() { # HEAD_BYTES SIZE: of a request on stdin → request, with its head, and where contents begin in offset
    require_number "$1"
    require_number "$2"
    request=$state/incoming.$$ offset=$1
    trap 'rm -f "$request" "$request".*' EXIT
    { cat > "$request" && head -c "$1" "$request" > "$request.head"; } ||
        fail "$FAILED" "$state: has no space for the request, so nothing was changed. Free some space."
    [ "$(wc -c < "$request")" -eq "$2" ] || fail "$REFUSED" 'The request was cut off, so nothing was changed.'
}

take_content() { # SIZE: the next content of the request → $request.content
    require_number "$1"
    tail -c "+$((offset + 1))" "$request" | head -c "$1" > "$request.content"
    offset=$((offset + $1))
    [ "$(wc -c < "$request.content")" -eq "$1" ] || fail "$FAILED" "$state: has no space for the contents."
}

is_rebooted() {
    read_word before "$state/boot_id" || return
    IFS= read -r boot < /proc/sys/kernel/random/boot_id && [ "$boot" != "$before" ]
}

has_systemd() {
    [ -d /run/systemd/system ] && command -v systemctl > /dev/null
}

is_finished() { # SESSION, when it is not the one that has this machine
    grep -qsxF -e "$1" "$state/sessions" || grep -qs "^$1 it was confirmed" "$home"/applied/[0-9]*/ended
}
