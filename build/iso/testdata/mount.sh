#!/bin/bash
# Runs as process 1 of a user-mode Linux whose root is the host's file system, read-only, and whose disk is an ISO image.
# Mounts it in each way a Linux system can, and prints the attributes of every entry and the sum of every file.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
mount -t proc none /proc
mount -t tmpfs none /mnt
mkdir /mnt/m
for module in cdrom/cdrom isofs/isofs; do
	file=$(find /usr/lib/uml/modules/"$(uname -r)"/kernel -path "*/$module.ko")
	# finit_module(2) of x86-64: containers rarely have insmod, Debian always has perl.
	perl -e 'open my $f, "<", $ARGV[0] or die "$ARGV[0]: $!"; syscall(313, fileno $f, my $none = "", 0) == 0 or die "$ARGV[0]: $!"' "$file"
done
for options in ro ro,norock,utf8 ro,norock,nojoliet; do
	mount -t iso9660 -o "$options" /dev/ubda /mnt/m || continue
	cd /mnt/m || continue
	printf 'mode\t%s\n' "$options"
	find . -printf 'stat\t%y %m %n %U %G %s %Ts\t%P\n'
	find . -type f -print0 | sort -z | xargs -0 sha256sum | sed 's/^/sum\t/'
	cd /
	umount /mnt/m
done
printf 'end\n'
sync
echo o >/proc/sysrq-trigger
while :; do read -r -t 1 _; done
