# The program: one step for one purpose.

status() {
    if [ -e "$state/owner" ]; then
        printf 'owner\t%s\n' "$(describe_owner)"
        [ ! -e "$state/session" ] || printf 'session\topen\n'
        watchdog_lives && printf 'watchdog\talive\n'
        for entry in "$journal"/[0-9]*; do
            [ ! -e "$entry" ] || { read_entry "$entry" && printf 'kept\t%s\n' "$real"; }
        done
    fi
}

words() { # PATH: whoever may write beside a log may put a link or a pipe in its place
    check_path "$1"
    directory=$(readlink -f -- "${1%/*}/") && cd -P -- "$directory" ||
        fail "$REFUSED" "$1: its directory is not there. Check this path."
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
        *) echo 'Run the restore agent by its absolute path.' >&2; exit "$REFUSED" ;;
    esac
    case $purpose in
        run | apply) ;;
        *) echo 'Run the restore agent as: keeper STEP run|apply …' >&2; exit "$REFUSED" ;;
    esac
    state=$home/$purpose journal=$home/$purpose/journal foreign_values=''
    cd / || exit "$FAILED"
    # The connection may break at any moment; what was begun is brought to its end.
    trap : HUP PIPE INT
    shift 2
    case $step in
        arm | change | activate | beat | restore | accept | adopt) "$step" "$@" ;;
        ready | confirm | applied | undo | knows | status | boot | watch | guard | nap | words) "$step" "$@" ;;
        *) echo "The keeper has no step $step." >&2; exit "$REFUSED" ;;
    esac
    ended=$?
    case $ended in
        0 | "$INCOMPLETE" | "$SERVICE_FAILED") printf 'end\t%s\n' "$PROTOCOL" || ended=$FAILED ;;
    esac
    exit "$ended"
}

main "$@"
