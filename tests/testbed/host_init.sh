# First process of a test host: makes a root directory of its own over the machine's, then holds the namespaces.
# Run as `sh host_init.sh NAME SIZE [DISK [systemd]]` in fresh network, process, IPC, host name and mount namespaces.
# Says `ready PID`, and ends with its input or killed; the kernel then ends everything that runs in the host.
# With a directory for its disk, what the host writes outlives it; systemd becomes the first process on request.
set -eu
name=$1 size=$2 disk=${3:-} first=${4:-}
# /proc is still the machine's: this pid is the one that the machine knows.
read -r pid _ </proc/self/stat

if [ -n "$first" ]; then
  # A group of its own: systemd would take the machine's processes for its own ones. Tests that were killed may
  # have left one of that name.
  mkdir -p "/sys/fs/cgroup/testbed-$pid"
  echo 0 >"/sys/fs/cgroup/testbed-$pid/cgroup.procs"
fi
if [ -n "$disk" ]; then
  mount --bind "$disk" /tmp
else
  # What the host writes stays in memory of its own; /usr, /etc and all the rest look like the machine's.
  mount -t tmpfs -o "size=$size" tmpfs /tmp
fi
is_new=
if [ ! -e /tmp/upper ]; then
  is_new=yes
  # What tuner keeps on this machine is none of the host's: whiteouts hide it, and nobody looks what is there
  # (Documentation/filesystems/overlayfs.rst).
  for place in var/lib/tuner etc/cron.d/tuner-restore etc/systemd/system/tuner-restore.service; do
    mkdir -p "/tmp/upper/${place%/*}"
    mknod "/tmp/upper/$place" c 0 0
  done
fi
mkdir -p /tmp/work /tmp/root
mount -t overlay -o lowerdir=/,upperdir=/tmp/upper,workdir=/tmp/work overlay /tmp/root
cd /tmp/root
if [ -n "$is_new" ]; then
  # A server that opens a log copies it to the host's disk first, and the machine's logs may be larger than that.
  cp -a --attributes-only var/log var/log-empty
  rm -rf var/log
  mv var/log-empty var/log
fi
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty net/tun; do
  [ -e "/dev/$device" ] || continue
  mkdir -p "dev/${device%"${device##*/}"}"
  : >"dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,mode=620,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o "mode=1777,size=$size" tmpfs tmp
mount -t tmpfs -o mode=700 tmpfs root
mount -t tmpfs -o mode=755 tmpfs home
pivot_root . .
umount -l .

# Of the kernel's settings only those of the network are the host's own.
mount --bind /proc/sys /proc/sys
mount --bind /proc/sys/net /proc/sys/net
mount -o remount,bind,ro /proc/sys

hostname "$name"
echo "127.0.0.1 localhost $name" >/etc/hosts
mkdir -p /run/sshd /run/lock
if [ -n "$disk" ]; then
  # Every boot has an id, and the kernel's stays the same.
  cat /proc/sys/kernel/random/uuid >/run/boot_id
  mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
fi
if [ -n "$first" ]; then
  echo "$name" >/etc/hostname
  # Nothing of what this machine starts; what the host enables itself is there after a restart.
  [ -e /etc/testbed ] || rm -f /etc/systemd/system/*.wants/*
  touch /etc/testbed
  # The kernel's modules are the machine's.
  ln -sf /dev/null /etc/systemd/system/modprobe@.service
  ln -sf /dev/null /etc/systemd/system/systemd-modules-load.service
  mount -o remount,bind,ro /sys
  echo "ready $pid"
  exec unshare --cgroup sh -c '
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    container=testbed exec /lib/systemd/systemd --log-target=null --show-status=0 </dev/null >/dev/null 2>&1'
fi
echo "ready $pid"
# The kernel reaps what is left to a first process that ignores this signal (wait(2)).
exec env --ignore-signal=CHLD cat >/dev/null
