// Package iso writes and reads ISO 9660 images: interchange level 3 with Rock Ridge and Joliet, the format of Solution
// archives.
//
// # Writing
//
// [Layout] decides from names, sizes and content keys alone where each byte goes. [Image.WriteTo] then writes the image
// in one sequential pass, to a pipe if need be; whoever wants to write in parallel writes [Image.WriteMetadata] and puts
// each of [Image.Extents] at its offset. The same files and options give the same bytes, on any machine and at any time.
//
// An image holds every name three times: as an identifier in upper case in the primary tree, where "isoinfo -x
// '/MANIFEST.YAML;1'" finds it, as itself in the Rock Ridge extension of that tree, and in UCS-2 in the Joliet tree,
// for systems that know no Rock Ridge. Layout refuses names that some reader would show in another way than it should,
// rather than to write an image that reads differently here and there. Content is stored once: files of equal keys share
// an extent, as hard links do. Extents begin at multiples of 4096 bytes, files above 4 GiB take several sections.
//
// [ImplantMD5] adds the checksum of isomd5sum to a finished image and [CheckMD5] tests it.
//
// The package writes directories and regular files only, all owned by root: no links, no devices, no boot records, no
// second session. Files that cannot be told apart without case are refused, too.
package iso
