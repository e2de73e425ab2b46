// Package iso writes and reads ISO 9660 images: level 3 with Rock Ridge and Joliet, the format of Solution archives.
package iso
