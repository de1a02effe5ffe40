# What a remote shell knows; sent once over its channel, before the first request. POSIX sh and coreutils.
#
# The channel is descriptors 0 and 1, which no command gets. An answer is frames, `end` the last of them:
#   ran STATUS LATE BEGAN ENDED CPU0 CPU1 CPU2 CPU3 OUT OUT_CUT ERR ERR_CUT   and OUT + ERR bytes
#   missing BYTES                                    and its name: there is no such program; nothing after it ran
#   full                                             no room for a command's input; it and what follows were not run
#   locked                                           sudo wants a password; it and what follows were not run
#   tree PID...                                      the processes that were looked at
#   started PID                                      all that follows is what the program prints
# BEGAN and ENDED are seconds of /proc/uptime, CPU as times(1) prints it: user and system, before and after.
# LATE is 1 when the deadline ended the command, 2 when not even sudo could.

export LC_ALL=C
# Debian keeps servers where an ordinary user's PATH does not look.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
# In memory, if possible: what tuner does still works when the disk is full, and does not use it.
# A sandbox's first shell has one already, where no server can reach it.
[ -n "$tuner_directory" ] || tuner_directory=$(mktemp -d /dev/shm/tuner.XXXXXXXXXX 2>/dev/null) ||
  tuner_directory=$(mktemp -d /tmp/tuner.XXXXXXXXXX) || exit
# No handlers of EXIT and TERM: tuner_guard would start with them, and run or swallow what is not meant for it.
trap 'tuner_late=1' USR1
# When nobody listens any more, the end comes with the end of the input.
trap : PIPE
cd /

tuner_mark=$tuner_directory/mark
tuner_root=
[ "$(id -u)" -eq 0 ] || tuner_root='sudo -n --'

# What is done when no more requests come.
tuner_end() {
  rm -rf "$tuner_directory"
}

# A file for the next command to read, from a format of printf.
tuner_stdin() {
  printf "$1" 2>/dev/null >"$tuner_directory/in" || tuner_full
}

# The same, of so many bytes that come after the request. dd(1) takes no byte more than it is told.
tuner_receive() {
  dd bs=65536 iflag=fullblock,count_bytes count="$1" of="$tuner_directory/in" 2>/dev/null
  [ "$(wc -c <"$tuner_directory/in")" -eq "$1" ] || tuner_full
}

# Nothing more is run: a part of a file, when there is no room or the link broke, must not become the file.
tuner_full() {
  tuner_broken=1
  echo full
  return 1
}

# Whether there is such a program. Not `command -v`, to which the shell's own words are programs as well.
tuner_has() {
  case $1 in */*) [ -f "$1" ] && [ -x "$1" ]; return ;; esac
  tuner_words=$IFS IFS=:
  for tuner_place in $PATH; do
    [ -f "$tuner_place/$1" ] && [ -x "$tuner_place/$1" ] && break
    tuner_place=
  done
  IFS=$tuner_words
  [ -n "$tuner_place" ]
}

# Puts processes and all that descends from them into $tuner_tree.
tuner_walk() {
  tuner_tree=
  while [ $# -gt 0 ]; do
    tuner_tree="$tuner_tree $*"
    tuner_next=
    for tuner_pid in "$@"; do
      for tuner_children in /proc/"$tuner_pid"/task/*/children; do
        tuner_found=
        { read -r tuner_found <"$tuner_children"; } 2>/dev/null
        tuner_next="$tuner_next $tuner_found"
      done
    done
    set -- $tuner_next
  done
}

# Puts the ids that kill(1) needs into $tuner_pids. /proc has those of the whole machine; in a sandbox the
# processes have others as well: NSpid of /proc/PID/status, one for each process namespace (proc(5)).
tuner_translate() {
  tuner_pids=
  for tuner_pid in "$@"; do
    while read -r tuner_key tuner_found; do
      [ "$tuner_key" = NSpid: ] || continue
      set -- $tuner_found
      [ $# -lt "$tuner_depth" ] || shift "$((tuner_depth - 1))"
      tuner_pids="$tuner_pids $1"
    done <"/proc/$tuner_pid/status"
  done
}
tuner_depth=1
while read -r tuner_key tuner_found; do
  if [ "$tuner_key" = NSpid: ]; then
    set -- $tuner_found
    tuner_depth=$#
  fi
done </proc/self/status

# Kills a process and all that descends from it; stopped first, as what stands still starts no child.
tuner_kill() {
  for tuner_signal in STOP KILL; do
    tuner_walk "$1"
    tuner_translate $tuner_tree
    $2 kill -"$tuner_signal" $tuner_pids
  done
} >/dev/null 2>&1

tuner_terminate() {
  tuner_translate "$1"
  kill -TERM $tuner_pids
} >/dev/null 2>&1

# Ends the wait for the job when its time is over. `$!` is the job as long as there is no sleep.
tuner_guard() {
  # KILL, as a handler that sleep starts with could swallow another signal.
  trap '[ "$!" = "$tuner_job" ] || kill -KILL "$!"; exit' TERM
  sleep "$1" &
  wait "$!"
  kill -USR1 "$$"
}

# The last of a file's bytes: how many, and how many there are before them.
tuner_measure() {
  tuner_size=0 tuner_cut=0
  [ -s "$1" ] || return 0
  tuner_size=$(wc -c <"$1")
  if [ "$tuner_size" -gt "$tuner_limit" ]; then
    tuner_cut=$((tuner_size - tuner_limit))
    tuner_size=$tuner_limit
  fi
}

# Just as much as was announced: a daemon that the command left behind may print on.
tuner_send() {
  if [ "$3" -gt 0 ]; then
    tail -c "+$(($3 + 1))" <"$1" | head -c "$2"
  elif [ "$2" -gt 0 ]; then
    head -c "$2" <"$1"
  fi
}

# Runs a command. Arguments: seconds, bytes to keep of each output, stdin, sudo's words or nothing, program, argv.
tuner_run() {
  [ -z "$tuner_broken" ] || return 1
  tuner_seconds=$1 tuner_limit=$2 tuner_in=$3 tuner_sudo=$4
  for tuner_program in ${tuner_sudo:+sudo} "$5"; do
    if ! tuner_has "$tuner_program"; then
      tuner_broken=1
      echo "missing ${#tuner_program}"
      printf %s "$tuner_program"
      return 1
    fi
  done
  shift 5
  tuner_late=0
  read -r tuner_began _ </proc/uptime
  times >"$tuner_directory/before"
  # sudo remembers a password for the children of this very shell (sudoers(5), timestamp_type).
  {
    read -r tuner_self _ </proc/self/stat
    echo "$tuner_self" >"$tuner_directory/pid"
    exec $tuner_sudo "$@"
  } <"$tuner_in" >"$tuner_directory/out" 2>"$tuner_directory/err" &
  tuner_job=$!
  tuner_guard "$tuner_seconds" </dev/null >/dev/null 2>&1 &
  tuner_watch=$!
  wait "$tuner_job"
  tuner_status=$?
  if [ "$tuner_late" -eq 1 ]; then
    read -r tuner_self <"$tuner_directory/pid"
    tuner_kill "$tuner_self" "$tuner_sudo"
    # What sudo may not kill goes on, and must not hold up this shell.
    if [ -n "$tuner_sudo" ] && ! tuner_is_over; then
      sleep 1
      tuner_is_over || tuner_late=2
    fi
    [ "$tuner_late" -eq 2 ] || wait "$tuner_job"
    tuner_status=$?
  fi
  { kill "$tuner_watch" && wait "$tuner_watch"; } 2>/dev/null
  times >"$tuner_directory/after"
  read -r tuner_ended _ </proc/uptime
  if [ -n "$tuner_sudo" ] && [ "$tuner_status" -eq 1 ] && tuner_is_locked; then
    tuner_broken=1
    echo locked
    return 1
  fi
  { read -r _; read -r tuner_cpu0 tuner_cpu1; } <"$tuner_directory/before"
  { read -r _; read -r tuner_cpu2 tuner_cpu3; } <"$tuner_directory/after"
  tuner_measure "$tuner_directory/out"
  tuner_out=$tuner_size tuner_out_cut=$tuner_cut
  tuner_measure "$tuner_directory/err"
  echo "ran $tuner_status $tuner_late $tuner_began $tuner_ended $tuner_cpu0 $tuner_cpu1 $tuner_cpu2 $tuner_cpu3" \
    "$tuner_out $tuner_out_cut $tuner_size $tuner_cut"
  tuner_send "$tuner_directory/out" "$tuner_out" "$tuner_out_cut"
  tuner_send "$tuner_directory/err" "$tuner_size" "$tuner_cut"
  return "$tuner_status"
}

# Whether the job has ended: it is a zombie, for which nobody waited yet.
tuner_is_over() {
  read -r tuner_line <"/proc/$tuner_self/stat" || return 0
  case $tuner_line in *') Z '*) return 0 ;; esac
  return 1
} 2>/dev/null

# Whether sudo refused to run the command without a password.
tuner_is_locked() {
  tuner_last=
  while IFS= read -r tuner_line; do tuner_last=$tuner_line; done <"$tuner_directory/err"
  case $tuner_last in
    'sudo: a password is required' | 'sudo: interactive authentication is required') return 0 ;;
  esac
  return 1
}

# Lets sudo check the password that comes as the next line, and remember it for this shell.
tuner_unlock() {
  IFS= read -r tuner_secret
  printf '%s\n' "$tuner_secret" | sudo -S -p '' -v >/dev/null 2>"$tuner_directory/err"
  tuner_status=$?
  tuner_secret=
  tuner_limit=4096
  tuner_measure "$tuner_directory/err"
  echo "ran $tuner_status 0 0 0 0m0s 0m0s 0m0s 0m0s 0 0 $tuner_size $tuner_cut"
  tuner_send "$tuner_directory/err" "$tuner_size" "$tuner_cut"
}

# Reads many files at once: those named, each followed by the mark, and those of the processes in $tuner_tree.
# Arguments: seconds, bytes, files. The mark, known to nobody else, keeps their contents apart; the first ends
# what is told of their modes and owners.
tuner_look() {
  tuner_limits="$1 $2"
  shift 2
  tuner_files=
  for tuner_pid in $tuner_tree; do
    for tuner_name in stat status limits cmdline "task/$tuner_pid/children"; do
      tuner_files="$tuner_files /proc/$tuner_pid/$tuner_name $tuner_mark"
    done
  done
  echo "tree$tuner_tree"
  tuner_run $tuner_limits /dev/null '' sh sh -c 'stat -L -c "%d:%i %a %u %g" -- "$@"; cat -- "$@"' sh \
    "$tuner_mark" "$@" $tuner_files
}

# Runs a program for as long as the channel is open; what it prints is the rest of the answer. Arguments: program, argv.
# When $tuner_enters is set, it goes into a sandbox first and tells by itself what was started there.
tuner_start() {
  if ! tuner_has "$1"; then
    echo "missing ${#1}"
    printf %s "$1"
    tuner_end
    exit 127
  fi
  shift
  exec 5<&0
  {
    read -r tuner_self _ </proc/self/stat
    echo "$tuner_self" >"$tuner_directory/pid"
    [ -n "$tuner_enters" ] || echo "started $tuner_self"
    exec "$@"
  } </dev/null 2>&1 5<&- &
  tuner_job=$!
  {
    while read -r tuner_line; do :; done
    read -r tuner_self <"$tuner_directory/pid"
    tuner_kill "$tuner_self"
  } <&5 >/dev/null 2>&1 &
  tuner_watch=$!
  exec 5<&-
  wait "$tuner_job"
  tuner_status=$?
  kill "$tuner_watch"
  tuner_end
  exit "$tuner_status"
}
