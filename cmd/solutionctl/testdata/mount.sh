#!/bin/bash
# Runs as process 1 of a user-mode Linux whose root is the host's file system, read-only. Makes of it a host as MetalK8s
# leaves one, imports an archive there, and prints what is to be seen; /proc/cmdline tells where the files of the test are.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root NO_COLOR=1
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
for writable in /mnt /run /srv /var/lib; do mount -t tmpfs none "$writable"; done
cp -a /etc /mnt/etc && mount --bind /mnt/etc /etc
mkdir -p /var/lib/metalk8s/repositories/conf.d
dir=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^testdir=//p')
for module in cdrom/cdrom isofs/isofs block/loop; do
	file=$(find /usr/lib/uml/modules/"$(uname -r)"/kernel -path "*/$module.ko")
	# finit_module(2) of x86-64: containers rarely have insmod, Debian always has perl.
	perl -e 'open my $f, "<", $ARGV[0] or die "$ARGV[0]: $!"; syscall(313, fileno $f, my $none = "", 0) == 0 or die "$ARGV[0]: $!"' "$file"
done

# MetalK8s itself has imported the archive before.
printf '# ours\nnone /mnt tmpfs noauto 0 0\n' >/etc/fstab
echo "$dir/demo-0.1.0.iso /srv/scality/demo-0.1.0 iso9660 ro,nofail 0 0" >>/etc/fstab
mkdir -p /etc/metalk8s /srv/scality/demo-0.1.0
mount /srv/scality/demo-0.1.0
cat >/etc/metalk8s/solutions.yaml <<-END
	apiVersion: solutions.metalk8s.scality.com/v1alpha1
	kind: SolutionsConfiguration
	archives: [$dir/demo-0.1.0.iso]
	active: {}
END

section() { printf '== %s\n' "$1"; }
# solutionctl ends like everything below: with what it printed, and its exit status.
solutionctl() {
	"$dir/solutionctl" "$@" --no-cluster 2>&1 9<&-
	printf 'exit %d\n' "$?"
}
files() {
	cd /srv/scality/demo-0.1.0 && find . -type f -print0 | sort -z | xargs -0 sha256sum
	cd /
}

section before
grep /srv/scality /proc/mounts | cut -d ' ' -f 2,3
section import
solutionctl deploy import --quiet --mount always --key "$dir/acme.pub" "$dir/demo-0.1.0.iso"
section again
solutionctl deploy import --quiet --key "$dir/acme.pub" "$dir/demo-0.1.0.iso"
section fstab
cat /etc/fstab
section configuration
cat /etc/metalk8s/solutions.yaml
section nginx
ls /var/lib/metalk8s/repositories/conf.d
grep -c 'alias /srv/scality/demo-0.1.0/images/' /var/lib/metalk8s/repositories/conf.d/demo-0.1.0-registry-config.inc
section mount
grep /srv/scality /proc/mounts | cut -d ' ' -f 2,3
cat /sys/block/loop*/loop/backing_file 2>/dev/null
section files
files
section reboot
umount /srv/scality/demo-0.1.0 && mount --all && files
section busy
exec 9</srv/scality/demo-0.1.0/manifest.yaml
solutionctl deploy unimport --quiet demo 0.1.0
exec 9<&-
section unimport
solutionctl deploy unimport --quiet demo 0.1.0
section left
cat /etc/fstab
grep /srv/scality /proc/mounts
find /srv /var/lib/solutionctl/archives /var/lib/metalk8s -mindepth 1
cat /etc/metalk8s/solutions.yaml
section end
sync
echo o >/proc/sysrq-trigger
while :; do read -r -t 1 _; done
