# Puts settings into TUX and lets it serve, prints those in force, or stops it.
# Usage: tux.sh serve SETTINGS PORT DOCUMENT_ROOT | ask SETTINGS | stop
set -eu
: "${TUX:=/proc/sys/net/tux}" # a file for each setting
: "${TUX_LISTEN:=/proc/net/tux}" # THREAD/listen/0: where a thread listens

case $1 in
  serve)
    # Most of them can be set only while TUX is stopped (TUX 2.2 reference manual, chapter 3).
    while read -r name value; do
      echo "$value" >"$TUX/$name"
    done <"$2"
    echo "$4" >"$TUX/documentroot"
    threads=$(cat "$TUX/threads")
    thread=0
    while [ "$thread" -lt "$threads" ]; do
      echo "http://0.0.0.0:$3" >"$TUX_LISTEN/$thread/listen/0"
      thread=$((thread + 1))
    done
    exec tux -t "$threads" -r "$4"
    ;;
  ask)
    while read -r name _; do
      echo "$name=$(cat "$TUX/$name")"
    done <"$2"
    ;;
  stop)
    exec tux --stop
    ;;
esac
