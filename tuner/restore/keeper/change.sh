# The step change: keep originals, write files and settings, put others back.

change() { # SESSION HEAD_BYTES SIZE: the request says what to do, line by line, then come the contents
    receive "$2" "$3"
    take_lock 30
    require_session "$1"
    list_kept
    refuse_foreign_values
    while IFS= read -r line <&5; do
        case $line in
            'set '*)
                IFS= read -r value <&5
                set_value "${line#* }" "$value"
                ;;
            'put '*)
                line=${line#* }
                take_content "${line%% *}"
                line=${line#* }
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
    tell_values
}

set_value() { # PATH VALUE
    resolve "$1"
    is_setting "$real" || fail "$REFUSED" "$real: is not a setting of the kernel."
    [ -w "$real" ] || fail "$REFUSED" "$real: may not be written here. Leave this setting out."
    keep_original "$real" 2> "$request.said" || refuse_unkept
    if companion_of "$real"; then keep_original "$companion" 2> "$request.said" || refuse_unkept; fi
    if ! { printf '%s\n' "$2" > "$real"; } 2> /dev/null; then
        refused=$real
        note_values
        fail "$REJECTED" "$refused: the kernel refused '$2'. Correct the range of this setting."
    fi
    log "set $real to $2"
}

put_content() { # PATH EXPECTED SOURCE: EXPECTED is the sum of the original that the new content was made of
    resolve "$1"
    is_setting "$real" && fail "$REFUSED" "$real: takes a value of one line."
    keep_original "$real" 2> "$request.said" || refuse_unkept
    find_entry "$real" "$journal" || fail "$FAILED" "$real: its backup is missing. Look into $journal."
    if [ "${sum%% *}" != "$2" ]; then
        printf 'foreign\t%s\n' "$asked"
        fail "$REFUSED" "$(printf '%s: %s. %s' "$real" \
            "somebody else changed it: it has the SHA-256 ${sum%% *}, where tuner had read $2" \
            'It was not overwritten. Run the command again.')"
    fi
    # Before it is there: after a power cut in between, what is there must be known as tuner's.
    { sha256sum < "$3" >> "$entry/after" && sync "$entry/after" "$entry"; } 2> "$request.said" || refuse_unkept
    like=new
    [ ! -e "$real" ] || like=$real
    said=$(replace "$real" "$3" "$like" is_ours 2>&1)
    case $? in
        0) log "put $real" ;;
        "$FOREIGN") refuse_foreign ;;
        *) fail "$REFUSED" "$real: cannot be written: $(printable "$said"). Check this path." ;;
    esac
}

put_back() { # PATH
    resolve "$1"
    find_entry "$real" "$journal" || return 0
    is_back && return
    case $kind in file | absent) is_ours || refuse_foreign ;; esac
    said=$(bring_back "$entry" 2>&1)
    if ! is_back; then
        case $kind in file | absent) is_ours || refuse_foreign ;; esac
        fail "$INCOMPLETE" "$real: cannot be restored: $(printable "$said"). Check this path."
    fi
    log "put back $real"
}

refuse_foreign() { # after read_entry: nothing is overwritten, and both versions are kept
    kept_in=''
    if [ -s "$entry/foreign" ]; then
        kept_in=" The version of somebody else is in $entry/foreign."
    elif [ -f "$real" ] && (open_file "$real" && copy /proc/self/fd/3 "$entry/foreign") 2> /dev/null &&
        sync "$entry/foreign" "$entry"; then
        kept_in=" The present version is also in $entry/foreign."
    fi
    [ "$kind" != file ] || kept_in="$kept_in The backup is in $entry/content."
    printf 'foreign\t%s\n' "$asked"
    fail "$REFUSED" "$(printf '%s: %s.%s %s' "$real" \
        'somebody else changed it while tuner was at work, so it was not overwritten' "$kept_in" \
        'Keep what you need of both, then run: tuner restore')"
}

refuse_unkept() {
    said=$(last_words "$request.said")
    fail "$REFUSED" "$real: its backup cannot be stored ($said), so it was not changed. Check this path."
}

show_values() { # of all settings that were ever changed; one grep, for the kernel gives a value in one read only
    set --
    for entry in "$journal"/[0-9]*; do
        read_entry "$entry" && [ "$kind" = setting ] && set -- "$@" "$real"
    done
    [ "$#" = 0 ] || grep -s '' /dev/null "$@"
}

note_values() { # as the kernel shows them: it may round what it is given, and one may change another
    { show_values > "$journal/values"; } 2> /dev/null || rm -f "$journal/values"
}

tell_values() { # the controller keeps them, too
    { while IFS= read -r line; do printf 'value\t%s\n' "$line"; done < "$journal/values"; } 2> /dev/null
    return 0
}

mark_foreign_values() { # → foreign_values; before anything is restored, for one setting may change another
    foreign_values=$newline
    if [ -s "$journal/values" ] && ! is_rebooted && differing=$(show_values | grep -vxF -f "$journal/values"); then
        for entry in "$journal"/[0-9]*; do
            read_entry "$entry" && [ "$kind" = setting ] || continue
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
