# Runs a PowerShell script on the host of IIS, and makes its site answer on a port here.
# Usage: iis.sh serve SCRIPT PORT | ask SCRIPT
set -eu
: "${IIS_HOST:=administrator@iis}"

# The script goes to the standard input: nothing of it is ever part of a command line.
run() {
  ssh -o BatchMode=yes "$IIS_HOST" powershell -NoProfile -NonInteractive -Command - <"$1"
}

case $1 in
  serve)
    run "$2"
    exec ssh -o BatchMode=yes -o ExitOnForwardFailure=yes -N -L "127.0.0.1:$3:127.0.0.1:80" "$IIS_HOST"
    ;;
  ask)
    run "$2"
    ;;
esac
