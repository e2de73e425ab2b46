// Package sbom lists the packages in the images of an archive, and writes bills of materials.
//
// Scan reads each layer once, as a stream, in the memory of a few buffers, and keeps the files that name packages: the databases of
// dpkg, apk and rpm, the build information of Go programs, metadata of Python, npm and Java. It merges layers as a container runtime does,
// so that a package which an upper layer removes or replaces is not listed. Kinds lists the files that are looked for; everything else in an image,
// such as a program that was copied into it, is not listed.
//
// A Document is written as SPDX 2.3 or CycloneDX 1.6. Equal images give equal bytes: the time is that of the newest image.
//
// Layers are read as hostile input. What exceeds the limits of a layer is refused. A file that names packages and cannot be
// read is listed with the reason, because a missing package must be visible. Nothing here knows vulnerabilities.
package sbom
