# First process of a test host: makes a root directory of its own over the machine's, then holds the namespaces.
# Run as `sh host_init.sh NAME SIZE` in fresh network, process, IPC, host name and mount namespaces. Says
# `ready PID`, and ends with its input; the kernel then ends everything that runs in the host.
set -eu
name=$1 size=$2
# /proc is still the machine's: this pid is the one that the machine knows.
read -r pid _ </proc/self/stat

# What the host writes stays in memory of its own; /usr, /etc and all the rest look like the machine's.
mount -t tmpfs -o "size=$size" tmpfs /tmp
mkdir /tmp/upper /tmp/work /tmp/root
mount -t overlay -o lowerdir=/,upperdir=/tmp/upper,workdir=/tmp/work overlay /tmp/root
cd /tmp/root
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /dev dev
mount -t devpts -o newinstance,mode=620,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
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
echo "ready $pid"
# The kernel reaps what is left to a first process that ignores this signal (wait(2)).
exec env --ignore-signal=CHLD cat >/dev/null
