// Package iso writes and reads ISO 9660 images: interchange level 3 with Rock Ridge and Joliet, the format of Solution
// archives.
//
// # Writing
//
// [Layout] computes the place of each byte from names, sizes and content keys alone. [Image.WriteTo] then writes the
// image in one sequential pass, to a pipe if need be; to write in parallel, write [Image.WriteMetadata] and put each of
// [Image.Extents] at its offset. The same files and options give the same bytes, on any machine and at any time.
//
// An image holds every name three times: as an identifier in upper case in the primary tree, where "isoinfo -x
// '/MANIFEST.YAML;1'" finds it, unchanged in the Rock Ridge extension of that tree, and in UCS-2 in the Joliet tree,
// for systems without Rock Ridge. Layout refuses names that some reader would show in another way, so that an image is
// the same in every reader. Content is stored once: files of equal keys share an extent, as hard links do. Extents
// begin at multiples of 4096 bytes, files above 4 GiB take several sections.
//
// [ImplantMD5] adds the checksum of isomd5sum to a finished image and [CheckMD5] tests it.
//
// # Reading
//
// [Open] indexes an image once and serves it as an [io/fs.FS] with the Rock Ridge names; the files are [io.ReaderAt]s
// on the image. It reads the images of mkisofs, genisoimage and xorriso as well. A change of two directory records
// could make an image that shows one manifest to isoinfo and another one to the kernel; so Open compares the three
// names and all extents of every file and refuses an image that is not the same to every reader.
//
// [Check] is strict about everything else that readers rely on and returns findings; [Rules] documents them. It also
// refuses the signatures of other formats, such as UDF, a partition table or the superblock of a file system, and bytes
// that belong to no file. [Refusal] makes an error of the findings. [CompareDiskFS] is a second opinion: go-diskfs,
// which shares no code with this package, must read the same. It runs within bounds, because it trusts its input, and
// is imported nowhere else.
//
// All three accept untrusted bytes: they read within the given size only, within a budget of calls and bytes, and never
// allocate memory for a size that an image merely claims.
//
// # Limits
//
// The package writes directories and regular files only, all owned by root: no links, no devices, no boot records, no
// second session. Files whose names differ only in case are refused, too.
package iso
