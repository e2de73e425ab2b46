package iso

import (
	"fmt"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Rule is one property of an image that [Check] judges. [Open] refuses an image for rules with Refused set as well:
// they decide which bytes a name means.
type Rule struct {
	ID       string
	Severity report.Severity
	Refused  bool
	Doc      string
}

// The identifiers of the rules, in the order of [Rules].
const (
	ruleUnreadable      = "iso-unreadable"
	ruleLimits          = "iso-limits"
	ruleDescriptor      = "iso-descriptor"
	ruleExtraDescriptor = "iso-extra-descriptor"
	ruleElTorito        = "iso-el-torito"
	ruleVolumeSize      = "iso-volume-size"
	ruleTrailingData    = "iso-trailing-data"
	ruleNoRockRidge     = "iso-no-rock-ridge"
	ruleNoJoliet        = "iso-no-joliet"
	ruleBothEndian      = "iso-both-endian"
	rulePathTable       = "iso-path-table"
	ruleRecord          = "iso-directory-record"
	ruleRecordForm      = "iso-record-form"
	ruleDotEntries      = "iso-dot-entries"
	ruleParentEntry     = "iso-parent-entry"
	ruleDirectorySize   = "iso-directory-size"
	ruleDirectoryLoop   = "iso-directory-loop"
	ruleSortOrder       = "iso-sort-order"
	ruleExtentBounds    = "iso-extent-bounds"
	ruleExtentOverlap   = "iso-extent-overlap"
	ruleMultiExtent     = "iso-multi-extent"
	ruleSUSP            = "iso-susp"
	ruleSUSPUnknown     = "iso-susp-unknown"
	ruleRelocated       = "iso-relocated-directory"
	ruleFileType        = "iso-file-type"
	ruleMode            = "iso-mode"
	ruleOwner           = "iso-owner"
	ruleName            = "iso-name"
	rulePrimaryName     = "iso-primary-name"
	ruleDuplicateName   = "iso-duplicate-name"
	ruleTreeDiverges    = "iso-tree-diverges"
	ruleHiddenData      = "iso-hidden-data"
	ruleOtherFormat     = "iso-other-format"
	ruleSecondOpinion   = "iso-second-opinion"
	ruleSecondGap       = "iso-second-opinion-gap"
)

// rules is the one table of rules; documentation is rendered from it.
var rules = []Rule{
	{
		ruleUnreadable, report.SeverityError, true,
		"The descriptors, directories and path tables can be read: the medium gives no error and the image does not end before them.",
	},
	{
		ruleLimits, report.SeverityError, true,
		"The image stays within what a Solution needs: 64 MiB for a directory or path table, 1,048,576 entries, 256 MiB of paths, 32 levels, 1 GiB of metadata.",
	},
	{
		ruleDescriptor, report.SeverityError, true,
		"Sector 16 holds the primary volume descriptor; there is one primary and at most one Joliet descriptor, a terminator, one volume in the set and a logical block of 2048 bytes.",
	},
	{
		ruleExtraDescriptor, report.SeverityError, false,
		"There is no volume descriptor besides the primary one, the Joliet one and the terminator: a partition or an enhanced descriptor is a further view of the image.",
	},
	{
		ruleElTorito, report.SeverityError, false,
		"There is no boot record: a Solution is not bootable, and a boot image is content that no directory shows.",
	},
	{
		ruleVolumeSize, report.SeverityError, true,
		"The volume is not larger than the file (a larger one means that the file is truncated), and both descriptors give the same volume size.",
	},
	{
		ruleTrailingData, report.SeverityError, false,
		"Nothing follows the end of the volume.",
	},
	{
		ruleNoRockRidge, report.SeverityError, true,
		"The primary tree carries Rock Ridge entries (SP, ER, and PX and NM for every file): they hold the names that a Solution uses.",
	},
	{
		ruleNoJoliet, report.SeverityWarning, false,
		"There is a Joliet tree, so that Windows and macOS show the same names.",
	},
	{
		ruleBothEndian, report.SeverityError, true,
		"The little-endian and the big-endian half of every both-endian field are equal: some readers use one, some the other.",
	},
	{
		rulePathTable, report.SeverityError, false,
		"The path tables, in both byte orders and for both trees, list exactly the directories of their tree, in the standard's order.",
	},
	{
		ruleRecord, report.SeverityError, true,
		"Every directory record is as long as its parts need, lies in one sector, and has an identifier.",
	},
	{
		ruleRecordForm, report.SeverityError, true,
		"Files are neither hidden, associated, interleaved nor on another volume, and have no extended attribute or record format.",
	},
	{
		ruleDotEntries, report.SeverityError, true,
		"Every directory starts with records for itself and its parent, which give the same extents and sizes as the records that lead there.",
	},
	{
		ruleParentEntry, report.SeverityWarning, false,
		"The parent record of a Joliet directory leads to the parent, not to the directory itself as xorriso writes it; readers ignore it.",
	},
	{
		ruleDirectorySize, report.SeverityError, true,
		"The length of every directory is a multiple of 2048 bytes and not zero.",
	},
	{
		ruleDirectoryLoop, report.SeverityError, true,
		"Every directory extent is reached exactly once.",
	},
	{
		ruleSortOrder, report.SeverityError, false,
		"The records of a directory are in the standard's order (ECMA-119 9.3; code unit order in the Joliet tree), since some readers search by halves.",
	},
	{
		ruleExtentBounds, report.SeverityError, true,
		"Every extent lies inside the image.",
	},
	{
		ruleExtentOverlap, report.SeverityError, false,
		"Two extents are either the same or apart; no file lies over a directory, a path table or a descriptor.",
	},
	{
		ruleMultiExtent, report.SeverityError, true,
		"The sections of a file follow each other under the same identifier, and all but the last fill whole sectors.",
	},
	{
		ruleSUSP, report.SeverityError, true,
		"The system use entries of every record can be parsed and their continuation areas end.",
	},
	{
		ruleSUSPUnknown, report.SeverityWarning, false,
		"There are no system use entries besides those of SUSP and Rock Ridge.",
	},
	{
		ruleRelocated, report.SeverityError, true,
		"No directory is relocated (CL, PL, RE): readers disagree on where it is.",
	},
	{
		ruleFileType, report.SeverityError, true,
		"There are only regular files and directories: no links, devices, sparse or transparently compressed files.",
	},
	{
		ruleMode, report.SeverityError, false,
		"No file has the set-user-ID or set-group-ID bit.",
	},
	{
		ruleOwner, report.SeverityWarning, false,
		"Every file belongs to user 0 and group 0.",
	},
	{
		ruleName, report.SeverityError, true,
		"Every Rock Ridge name is UTF-8 of at most 255 bytes without slash, backslash or control characters, and neither . nor .. .",
	},
	{
		rulePrimaryName, report.SeverityWarning, false,
		"Primary identifiers follow interchange level 3: A-Z, 0-9 and _, up to 31 characters, one dot in file names.",
	},
	{
		ruleDuplicateName, report.SeverityError, true,
		"No two names of a directory are equal, in any of the three trees, even when case and Unicode normalization are ignored.",
	},
	{
		ruleTreeDiverges, report.SeverityError, true,
		"The ISO 9660, Rock Ridge and Joliet names lead to the same content: the same paths, extents and sizes.",
	},
	{
		ruleHiddenData, report.SeverityError, false,
		"Bytes that belong to no file and no structure are zero, those of the system area too.",
	},
	{
		ruleOtherFormat, report.SeverityError, false,
		"No program can take the image for something else: it holds no volume structure or anchor of UDF, no partition table, and no mark of another file system.",
	},
	{
		ruleSecondOpinion, report.SeverityError, false,
		"An independent implementation, go-diskfs, reads the same names, sizes, modes and extents.",
	},
	{
		ruleSecondGap, report.SeverityWarning, false,
		"No name is one that go-diskfs is known to misread: one with a leading or trailing dot, or one split over several NM entries.",
	},
}

// Rules returns every rule that [Check] and [CompareDiskFS] apply.
func Rules() []Rule { return append([]Rule(nil), rules...) }

// ruleByID returns the rule; every identifier in this package is in the table.
func ruleByID(id string) Rule {
	for _, r := range rules {
		if r.ID == id {
			return r
		}
	}
	panic("iso: rule " + id + " is not in the table")
}

// maxFindingsPerRule bounds the output for an image with the same fault in each of its thousands of entries.
const maxFindingsPerRule = 20

// verdict collects findings. In strict mode ([Check]) everything is collected; otherwise ([Open]) the first fault of a
// rule that refuses ends the work.
type verdict struct {
	strict   bool
	findings []report.Finding
	counts   map[string]int
}

// flag records a fault after which parsing can continue. It returns an error when it must not.
func (v *verdict) flag(rule, path, format string, args ...any) error {
	if v.strict {
		v.add(rule, path, format, args...)
		return nil
	}
	if !ruleByID(rule).Refused {
		return nil
	}
	return corrupt(rule, path, format, args...)
}

// fail records a fault after which nothing else can be trusted; it always returns an error.
func (v *verdict) fail(rule, path, format string, args ...any) error {
	if v.strict {
		v.add(rule, path, format, args...)
	}
	return corrupt(rule, path, format, args...)
}

// add records a fault in strict mode.
func (v *verdict) add(rule, path, format string, args ...any) {
	if v.counts == nil {
		v.counts = map[string]int{}
	}
	v.counts[rule]++
	if v.counts[rule] > maxFindingsPerRule {
		return
	}
	r := ruleByID(rule)
	v.findings = append(v.findings, report.Finding{
		Rule: rule, Severity: r.Severity, Path: path, Message: fmt.Errorf(format, args...).Error(), Hint: hintFor(rule),
	})
}

// result returns the findings in output order, with one line for those that were left out.
func (v *verdict) result() []report.Finding {
	for _, r := range rules {
		if more := v.counts[r.ID] - maxFindingsPerRule; more > 0 {
			v.findings = append(v.findings, report.Finding{
				Rule: r.ID, Severity: r.Severity, Message: fmt.Sprintf("%d more findings of this rule are not shown", more),
			})
		}
	}
	report.SortFindings(v.findings)
	return v.findings
}

func corrupt(rule, path, format string, args ...any) error {
	err := report.Errorf(report.Corrupt, format, args...)
	if path != "" && path != "." {
		err = report.Errorf(report.Corrupt, "%s: %w", path, err.Err)
	}
	return err.WithHint("%s", hintFor(rule))
}

// hintFor returns the remedy for a fault of the rule.
func hintFor(rule string) string {
	switch rule {
	case ruleUnreadable:
		return "it is another file, or not all of it: copy or download it again and compare its checksum"
	case ruleVolumeSize, ruleExtentBounds:
		return "the file is truncated or damaged: copy or download it again and compare its checksum"
	case rulePrimaryName:
		return "only programs that know neither Rock Ridge nor Joliet see these names; solutionctl build writes others, mkisofs does not, whatever its flags"
	case ruleNoRockRidge, ruleNoJoliet, ruleRelocated:
		return "build the archive with solutionctl, or with mkisofs -R -J -l -iso-level 3"
	case ruleFileType:
		return "replace links and special files by regular files and build the archive again"
	case ruleHiddenData, ruleOtherFormat:
		return "build the archive with solutionctl, or with mkisofs -r -J -l -iso-level 3 without -udf, -hfs or a boot image"
	case ruleTreeDiverges, ruleDuplicateName, ruleSecondOpinion:
		return "do not use this archive: programs disagree about its content; get it again from its vendor"
	case ruleOwner:
		return "build with solutionctl, or with mkisofs -r instead of -R"
	case ruleSecondGap:
		return "rename the file"
	default:
		return "build the archive again"
	}
}
