# Runs a command on this machine as it would be if a managed run had been killed on it, and others had filled a log.
# Run as `unshare --mount --propagation private sh used_machine.sh EMPTY_DIRECTORY COMMAND…`: all else, but the
# network and the processes, is this machine's to read, and what is written to its root file system is memory.
set -eu
own=$1 back=$PWD
shift
mount -t tmpfs tmpfs "$own"
mkdir "$own/upper" "$own/work" "$own/root"
mount -t overlay -o "lowerdir=/,upperdir=$own/upper,workdir=$own/work" overlay "$own/root"
while read -r _ place _; do
  case $place in / | "$own" | "$own"/*) continue ;; esac
  mount --bind "$place" "$own/root$place"
done </proc/self/mounts
cd "$own/root"
pivot_root . .
umount -l .
cd "$back"

state=/var/lib/tuner/run
mkdir -p "$state/journal/10001" /etc/cron.d /etc/systemd/system/multi-user.target.wants
printf '%s\n' 'by somebody' 'study killed' 'since long ago' 'controller another' >"$state/owner"
printf '%s\n' /etc/hostname file '644 0 0' 'another sum  -' >"$state/journal/10001/meta"
echo 'another original' >"$state/journal/10001/content"
echo 'not the keeper' >/var/lib/tuner/keeper
echo '@reboot root false' >/etc/cron.d/tuner-restore
printf '[Service]\nType=oneshot\nExecStart=false\n' >/etc/systemd/system/tuner-restore.service
chmod -R go= /var/lib/tuner
head -c 400M /dev/zero >/var/log/nginx/access.log
sums() {
  find /var/lib/tuner /etc/cron.d/tuner-restore /etc/systemd/system/tuner-restore.service \
    -printf '%p %m %T@ %C@\n' -type f -exec sha256sum {} +
}
before=$(sums)
"$@"
after=$(sums)
[ "$before" = "$after" ] || {
  printf 'the state of the machine was touched:\n%s\n---\n%s\n' "$before" "$after"
  exit 1
}
