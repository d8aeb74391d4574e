# systemd-box.sh FOLDER, below `unshare -m`: becomes a systemd that is pid 1 of its own namespaces, on an overlay of / that
# is gone with it. Only a handful of targets are there as unit files, and no kernel setting of the machine can be written.
set -e
cd "$1"
mount --make-rprivate /
mount -t tmpfs -o mode=755 lab .
cd "$1"
mkdir up work root groups
mount -t cgroup2 cgroup2 groups
mkdir "groups/relight-lab-$$"
echo $$ >"groups/relight-lab-$$/cgroup.procs"
mount -t overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" lab root
mkdir keep
for target in basic sysinit shutdown umount timers sockets paths slices multi-user; do
	cp "/usr/lib/systemd/system/$target.target" keep
done
for place in run tmp dev etc/systemd/system usr/lib/systemd/system usr/lib/systemd/system-generators; do
	mount -t tmpfs -o mode=755 lab "root/$place"
done
cp keep/* root/usr/lib/systemd/system
: >root/etc/fstab
exec unshare -p -f -C -u -i --kill-child sh -ec '
cd "$0"
mount --make-rprivate /
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for node in null zero full random urandom tty fuse; do [ ! -e /dev/$node ] || cp -a /dev/$node dev; done
hostname box
mkdir -p old
pivot_root . old
umount -l old
cd /
exec env container=lab /lib/systemd/systemd --system --unit=multi-user.target --show-status=0 --log-target=null
' "$1/root"
