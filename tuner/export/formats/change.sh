# Everything is looked at first: files and values that are neither as before nor as wanted are somebody else's
# work, and then nothing is changed. What fails later is put back.

refuse() {
  printf '%s: %s. Nothing was changed.\n' "$0" "$1" >&2
  exit 1
}

sum_of() {
  if [ -L "$1" ]; then
    echo 'a link'
  elif [ -f "$1" ]; then
    sha256sum <"$1" | cut -d ' ' -f 1
  elif [ -e "$1" ]; then
    echo 'no file'
  else
    echo absent
  fi
}

# Of choices, which the kernel shows as `always [madvise] never`, the one in brackets.
value_of() {
  tr -s '[:space:]' ' ' <"$1" | sed -e 's/^ //' -e 's/ $//' -e 's/.*\[\([^]]*\)\].*/\1/'
}

# expect_file PATH SHA256-BEFORE SHA256-AFTER
expect_file() {
  case $(sum_of "$1") in
    "$3") ;;
    "$2") differs=yes ;;
    *) refuse "$1 has changed since this was written" ;;
  esac
}

# expect_value PATH BEFORE AFTER
expect_value() {
  [ -e "$1" ] || refuse "$1 does not exist on this host"
  found=$(value_of "$1")
  case $found in
    "$3") ;;
    "$2") differs=yes ;;
    *) refuse "$1 is $found, and neither $2 nor $3" ;;
  esac
}

# mark FOLDER
mark() {
  kept=$1
  if [ -d "$kept" ]; then
    printf '%s: an earlier run was cut off; services may still run with old settings\n' "$0" >&2
    differs=yes cut_off=yes
  fi
}

begin() {
  if [ -z "$differs" ]; then
    printf '%s: everything is in place already\n' "$0"
    exit 0
  fi
  if [ "$wish" = --check ]; then
    printf '%s: not everything is in place; nothing was changed\n' "$0" >&2
    exit 1
  fi
  (umask 077 && mkdir -p "$kept")
  touch "$kept/absent" "$kept/values" "$kept/services"
  # Since it was cut off, somebody may have restarted a service.
  [ -z "$cut_off" ] || services >>"$kept/services"
  trap put_back EXIT
  trap 'exit 130' HUP INT TERM
}

# What an earlier run that was cut off kept is the original.
keep_file() {
  if [ -e "$kept/files$1" ] || grep -qxF -e "$1" "$kept/absent"; then
    return
  elif [ -e "$1" ]; then
    mkdir -p "$kept/files${1%/*}"
    cp -a "$1" "$kept/new"
    mv "$kept/new" "$kept/files$1"
  else
    printf '%s\n' "$1" >>"$kept/absent"
  fi
}

# put_file PATH BYTES, with the content as standard input; owner and mode stay those of the old file.
put_file() {
  keep_file "$1"
  mkdir -p "${1%/*}"
  new=${1%/*}/.tuner-new
  if [ -e "$1" ]; then
    cp -a "$1" "$new"
  else
    : >"$new"
    chmod 644 "$new"
  fi
  head -c "$2" >"$new"
  mv -f "$new" "$1"
}

# take_file PATH
take_file() {
  keep_file "$1"
  # A run that was killed may have left the other one.
  rm -f "$1" "${1%/*}/.tuner-new"
}

# put_value PATH VALUE
put_value() {
  grep -qF -e "$1 " "$kept/values" || printf '%s %s\n' "$1" "$(value_of "$1")" >>"$kept/values"
  printf '%s\n' "$2" 2>/dev/null >"$1" || {
    printf '%s: the kernel refuses %s for %s\n' "$0" "$2" "$1" >&2
    exit 1
  }
}

reload_units() {
  [ ! -d /run/systemd/system ] || systemctl daemon-reload
}

# activate reload|restart SERVICE
activate() {
  printf '%s %s\n' "$1" "$2" >>"$kept/services"
  if [ -d /run/systemd/system ]; then
    systemctl "$1" "$2"
  else
    service "$2" "$1"
  fi
}

put_back() {
  trap - EXIT
  set +e
  printf '%s: failed; restoring everything\n' "$0" >&2
  (cd "$kept/files" 2>/dev/null && find . -type f) | while IFS= read -r name; do
    cp -a "$kept/files/$name" "/$name"
  done
  while IFS= read -r path; do rm -f "$path" "${path%/*}/.tuner-new"; done <"$kept/absent"
  while read -r path value; do printf '%s\n' "$value" >"$path"; done <"$kept/values"
  reload_units
  sort -u "$kept/services" >"$kept/restarted"
  if [ -s "$kept/restarted" ] && ! check; then
    printf '%s: the services were left running: their check refuses the files as they were\n' "$0" >&2
    running=no
  else
    while read -r verb name; do
      activate "$verb" "$name" </dev/null || activate restart "$name" </dev/null || running=no
    done <"$kept/restarted"
  fi
  [ "$running" = no ] || rm -rf "$kept"
  exit 1
}

end() {
  trap - EXIT
  rm -rf "$kept"
}

set -eu
differs=
cut_off=
running=yes
wish=${1-}
case $wish in
  '' | --check) ;;
  *) refuse "$wish is no option; the only option is --check" ;;
esac
[ "$(id -u)" -eq 0 ] || refuse 'this needs root'
