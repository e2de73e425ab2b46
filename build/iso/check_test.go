package iso

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
)

// fault is one damage to a good image and the rules that must notice it: these and no other.
type fault struct {
	name  string
	rules []string
	patch func(p *patched)
}

// faults has at least one entry for each rule that a patch can break.
func faults() []fault {
	only := func(rule string) []string { return []string{rule} }
	manifest := primaryPath("manifest.yaml")
	return slices.Concat(descriptorFaults(), treeFaults(), []fault{
		// Directory records.
		{"record too long", only(ruleRecord), func(p *patched) { p.data[p.record(primaryTree, manifest)+32] = 200 }},
		{"record without identifier", only(ruleRecord), func(p *patched) { p.data[p.record(primaryTree, manifest)+32] = 0 }},
		{"record crosses sector", only(ruleRecord), func(p *patched) {
			at, last := p.directory(primaryTree, "MANY"), 0
			for end := at + sectorSize; at < end && p.data[at] != 0; at += int(p.data[at]) {
				last = at
			}
			p.data[last] = 254
		}},
		{"hidden file", only(ruleRecordForm), func(p *patched) { p.data[p.record(primaryTree, manifest)+25] |= flagHidden }},
		{"associated file", only(ruleRecordForm), func(p *patched) { p.data[p.record(jolietTree, "manifest.yaml")+25] |= flagAssociated }},
		{"extended attributes", only(ruleRecordForm), func(p *patched) { p.data[p.record(primaryTree, manifest)+1] = 1 }},
		{"interleaved file", only(ruleRecordForm), func(p *patched) { p.data[p.record(primaryTree, manifest)+26] = 1 }},
		{"size of . differs", only(ruleDotEntries), func(p *patched) { p.put32(p.directory(primaryTree, "PAIR")+10, 2*sectorSize) }},
		{"extent of .. differs", only(ruleDotEntries), func(p *patched) {
			at := p.directory(jolietTree, "pair") // the record of the parent follows
			p.put32(at+int(p.data[at])+2, p.get32(at+2)+1)
		}},
		{"parent of itself", only(ruleParentEntry), func(p *patched) {
			at := p.directory(jolietTree, "pair")
			p.put32(at+int(p.data[at])+2, p.get32(at+2))
		}},
		{"no record for itself", only(ruleDotEntries), func(p *patched) { p.data[p.directory(primaryTree, "PAIR")+33] = 'A' }},
		{"directory length", only(ruleDirectorySize), func(p *patched) { p.put32(p.record(primaryTree, "PAIR")+10, 2049) }},
		{"empty directory extent", only(ruleDirectorySize), func(p *patched) { p.put32(p.record(jolietTree, "pair")+10, 0) }},
		{"directory loop", only(ruleDirectoryLoop), func(p *patched) {
			p.put32(p.record(primaryTree, "ZONE/INNER")+2, p.get32(p.descriptor(primaryTree)+158))
		}},
		{"directory twice", only(ruleDirectoryLoop), func(p *patched) {
			p.put32(p.record(jolietTree, "zone/other")+2, p.get32(p.record(jolietTree, "zone/inner")+2))
		}},
		{"unsorted", only(ruleSortOrder), func(p *patched) {
			a, b := p.record(primaryTree, "PAIR/EVIL.;1"), p.record(primaryTree, "PAIR/GOOD.;1")
			p.swap(a, b, int(p.data[a]))
		}},
		{"unsorted Joliet", only(ruleSortOrder), func(p *patched) {
			a, b := p.record(jolietTree, "pair/dup-x"), p.record(jolietTree, "pair/dup-y")
			p.swap(a, b, int(p.data[a]))
		}},
		{"extent outside", only(ruleExtentBounds), func(p *patched) { p.put32(p.record(primaryTree, manifest)+2, 1<<31) }},
		{"size absurd", only(ruleExtentBounds), func(p *patched) { p.put32(p.record(jolietTree, "manifest.yaml")+10, 1<<32-1) }},
		{"directory outside", only(ruleExtentBounds), func(p *patched) { p.put32(p.record(primaryTree, "PAIR")+2, 1<<32-1) }},
		{"extents overlap", only(ruleExtentOverlap), func(p *patched) {
			p.put32(p.record(primaryTree, "PAIR/DUP_X.;1")+10, 4097)
			p.put32(p.record(jolietTree, "pair/dup-x")+10, 4097)
		}},
		{"file over directory", []string{ruleExtentOverlap, ruleHiddenData}, func(p *patched) {
			p.put32(p.record(primaryTree, "PAIR/DUP_X.;1")+2, p.get32(p.descriptor(primaryTree)+158))
			p.put32(p.record(jolietTree, "pair/dup-x")+2, p.get32(p.descriptor(primaryTree)+158))
		}},
		{"last section missing", only(ruleMultiExtent), func(p *patched) { p.data[p.record(primaryTree, manifest)+25] |= flagMultiExtent }},
		{"section is a directory", only(ruleMultiExtent), func(p *patched) { p.data[p.record(primaryTree, "PAIR")+25] |= flagMultiExtent }},
		{"data after the records", only(ruleHiddenData), func(p *patched) { p.data[p.directory(primaryTree, "PAIR")+sectorSize-1] = 1 }},
	}, rockRidgeFaults())
}

// descriptorFaults damage the volume descriptors and path tables.
func descriptorFaults() []fault {
	only := func(rule string) []string { return []string{rule} }
	orphaned := func(rule string) []string { return []string{ruleHiddenData, ruleNoJoliet, rule} }
	return []fault{
		{"block size", only(ruleDescriptor), func(p *patched) {
			copy(p.data[p.descriptor(primaryTree)+128:], "\x00\x10\x10\x00")
		}},
		{"no primary descriptor", only(ruleDescriptor), func(p *patched) { p.data[p.descriptor(primaryTree)+1] = 'X' }},
		{"no terminator", only(ruleDescriptor), func(p *patched) { p.data[18*sectorSize+1] = 'X' }},
		{"second primary descriptor", only(ruleDescriptor), func(p *patched) { p.data[p.descriptor(jolietTree)] = descriptorPrimary }},
		{"enhanced descriptor", orphaned(ruleExtraDescriptor), func(p *patched) {
			copy(p.data[p.descriptor(jolietTree)+88:], "\x00\x00\x00")
		}},
		{"partition", orphaned(ruleExtraDescriptor), func(p *patched) { p.data[p.descriptor(jolietTree)] = 3 }},
		{"boot record", orphaned(ruleElTorito), func(p *patched) { p.data[p.descriptor(jolietTree)] = descriptorBoot }},
		{"no Joliet", []string{ruleHiddenData, ruleNoJoliet, ruleOtherFormat}, func(p *patched) { p.data[p.descriptor(jolietTree)] = descriptorTerminator }},
		{"Joliet volume size", only(ruleVolumeSize), func(p *patched) {
			p.put32(p.descriptor(jolietTree)+80, p.get32(p.descriptor(jolietTree)+80)+1)
		}},
		{"truncated", only(ruleVolumeSize), func(p *patched) { p.data = p.data[:len(p.data)-1] }},
		{"data after the volume", only(ruleTrailingData), func(p *patched) { p.data = append(p.data, make([]byte, 100)...) }},
		{"root directory absurd", only(ruleLimits), func(p *patched) { p.put32(p.descriptor(primaryTree)+166, 128<<20) }},
		{"path table absurd", only(ruleLimits), func(p *patched) { p.put32(p.descriptor(primaryTree)+132, 128<<20) }},
		{"volume size halves", only(ruleBothEndian), func(p *patched) { p.data[p.descriptor(primaryTree)+87]++ }},
		{"block size halves", only(ruleBothEndian), func(p *patched) { p.data[p.descriptor(jolietTree)+131]++ }},
		{"path table size halves", only(ruleBothEndian), func(p *patched) { p.data[p.descriptor(primaryTree)+139]++ }},
		{"root extent halves", only(ruleBothEndian), func(p *patched) { p.data[p.descriptor(jolietTree)+156+9]++ }},
		{"extent halves", only(ruleBothEndian), func(p *patched) { p.data[p.record(primaryTree, "PAIR")+9]++ }},
		{"size of . halves", only(ruleBothEndian), func(p *patched) { p.data[p.directory(primaryTree, "PAIR")+17]++ }},
		{"path table L extent", only(rulePathTable), func(p *patched) { p.data[p.pathTable(primaryTree, false)+2]++ }},
		{"path table M extent", only(rulePathTable), func(p *patched) { p.data[p.pathTable(primaryTree, true)+5]++ }},
		{"Joliet path table identifier", only(rulePathTable), func(p *patched) { p.data[p.pathTable(jolietTree, false)+10+8+1]++ }},
		{"path table parent", only(rulePathTable), func(p *patched) {
			at := p.pathTable(primaryTree, false)
			at += bytes.Index(p.data[at:], []byte("CRDS")) - 2
			p.data[at]--
		}},
		{"path table lists a directory twice", only(rulePathTable), func(p *patched) {
			at := p.pathTable(jolietTree, false)
			inner := at + bytes.Index(p.data[at:], ucs2("inner")) - 8
			other := at + bytes.Index(p.data[at:], ucs2("other")) - 8
			copy(p.data[other:other+18], p.data[inner:inner+18])
		}},
		{"path table size", []string{ruleHiddenData, rulePathTable}, func(p *patched) {
			p.put32(p.descriptor(primaryTree)+132, p.get32(p.descriptor(primaryTree)+132)-4)
		}},
		{"no path table", []string{ruleHiddenData, rulePathTable}, func(p *patched) { p.put32(p.descriptor(primaryTree)+140, 0) }},
		{"system area in use", only(ruleHiddenData), func(p *patched) { p.data[510] = 0x55 }},
	}
}

// rockRidgeFaults damage the system use entries.
func rockRidgeFaults() []fault {
	only := func(rule string) []string { return []string{rule} }
	evil, long := "PAIR/EVIL.;1", primaryPath("pair/long-"+strings.Repeat("n", 200))
	return []fault{
		{"no SP", only(ruleNoRockRidge), func(p *patched) { p.replace(p.entry("", "SP"), "SP", "PD") }},
		{"no PX", only(ruleNoRockRidge), func(p *patched) { p.replace(p.entry(evil, "PX"), "PX", "PD") }},
		{"no NM", only(ruleNoRockRidge), func(p *patched) { p.replace(p.entry(evil, "NM"), "NM", "PD") }},
		{"PX halves", only(ruleBothEndian), func(p *patched) { p.data[p.entry(evil, "PX")+11]++ }},
		{"CE halves", only(ruleBothEndian), func(p *patched) { p.data[p.entry(long, "CE")+27]++ }},
		{"entry too short", only(ruleSUSP), func(p *patched) { p.data[p.entry(evil, "NM")+2] = 3 }},
		{"entry too long", only(ruleSUSP), func(p *patched) { p.data[p.entry(evil, "NM")+2] = 250 }},
		{"name continued nowhere", only(ruleSUSP), func(p *patched) { p.data[p.entry(evil, "NM")+4] = 1 }},
		{"continuation of itself", only(ruleSUSP), func(p *patched) {
			ce := p.entry(long, "CE")
			p.put32(ce+20, 28)
			area := int(p.get32(ce+4))*sectorSize + int(p.get32(ce+12))
			copy(p.data[area:], p.data[ce:ce+28])
		}},
		{"continuation crosses sector", only(ruleSUSP), func(p *patched) { p.put32(p.entry(long, "CE")+20, sectorSize+1) }},
		{"continuation outside", only(ruleExtentBounds), func(p *patched) { p.put32(p.entry(long, "CE")+4, 1<<31) }},
		{"unknown entry", only(ruleSUSPUnknown), func(p *patched) { p.replace(p.entry(evil, "TF"), "TF", "ZZ") }},
		{"relocated directory", only(ruleRelocated), func(p *patched) { p.replace(p.entry("PAIR", "TF"), "TF", "RE") }},
		{"symbolic link", only(ruleFileType), func(p *patched) { p.replace(p.entry(evil, "TF"), "TF", "SL") }},
		{"compressed file", only(ruleFileType), func(p *patched) { p.replace(p.entry(evil, "TF"), "TF", "ZF") }},
		{"device mode", only(ruleFileType), func(p *patched) { p.put32(p.entry(evil, "PX")+4, 0o020444) }},
		{"set-user-ID", only(ruleMode), func(p *patched) { p.put32(p.entry(evil, "PX")+4, 0o104555) }},
		{"owner", only(ruleOwner), func(p *patched) { p.put32(p.entry(evil, "PX")+20, 1000) }},
		{"slash in name", only(ruleName), func(p *patched) { p.replace(p.entry(evil, "NM")+5, "evil", "e/il") }},
		{"backslash in name", only(ruleName), func(p *patched) { p.replace(p.entry(evil, "NM")+5, "evil", `e\il`) }},
		{"name not UTF-8", only(ruleName), func(p *patched) { p.replace(p.entry(evil, "NM")+5, "evil", "e\xff\xfel") }},
		{"mode of . differs", only(ruleDotEntries), func(p *patched) {
			at := p.directory(primaryTree, "PAIR") + 34
			p.replace(at, "PX", "PX")
			p.put32(at+4, 0o040777)
		}},
	}
}

// treeFaults make the trees show different content.
func treeFaults() []fault {
	only := func(rule string) []string { return []string{rule} }
	return []fault{
		// isoinfo -x shows another file than Rock Ridge: signing such an archive would sign two manifests.
		{"primary identifiers swapped", only(ruleTreeDiverges), func(p *patched) {
			a, b := p.identifier(primaryTree, "PAIR/EVIL.;1"), p.identifier(primaryTree, "PAIR/GOOD.;1")
			p.swap(a, b, len("EVIL.;1"))
			p.swap(a-33, b-33, int(p.data[a-33])) // in order again
		}},
		{"Rock Ridge names swapped", only(ruleTreeDiverges), func(p *patched) {
			p.swap(p.entry("PAIR/EVIL.;1", "NM"), p.entry("PAIR/GOOD.;1", "NM"), 9)
		}},
		{"primary identifier of its own", only(ruleTreeDiverges), func(p *patched) {
			p.replace(p.identifier(primaryTree, "PAIR/GOOD.;1"), "GOOD", "GOAD")
		}},
		{"mangled name takes a sibling's", []string{ruleDuplicateName, ruleTreeDiverges}, func(p *patched) {
			p.replace(p.entry("PAIR/EVIL.;1", "NM")+5, "evil", "e-il")
			p.replace(p.identifier(primaryTree, "PAIR/EVIL.;1"), "EVIL", "GOOD")
			p.replace(p.identifier(jolietTree, "pair/evil"), "\x00e\x00v\x00i\x00l", "\x00e\x00-\x00i\x00l")
		}},
		{"primary extent", []string{ruleExtentOverlap, ruleTreeDiverges}, func(p *patched) {
			p.put32(p.record(primaryTree, "PAIR/GOOD.;1")+10, 5000)
		}},
		{"Joliet size", only(ruleTreeDiverges), func(p *patched) { p.put32(p.record(jolietTree, "pair/good")+10, 4) }},
		{"Joliet extents swapped", only(ruleTreeDiverges), func(p *patched) {
			p.swap(p.record(jolietTree, "pair/good")+2, p.record(jolietTree, "pair/evil")+2, 16)
		}},
		{"Joliet name of its own", only(ruleTreeDiverges), func(p *patched) {
			p.replace(p.identifier(jolietTree, "pair/good"), "\x00g\x00o", "\x00g\x00p")
		}},
		{"Joliet file for directory", []string{ruleHiddenData, rulePathTable, ruleTreeDiverges}, func(p *patched) {
			p.data[p.record(jolietTree, "zone/other")+25] = 0
		}},
		{"mangled name with other content", []string{ruleTreeDiverges}, func(p *patched) {
			p.put32(p.record(jolietTree, "pair/long-"+strings.Repeat("n", 98))+10, 3)
		}},
		{"names that differ in case", only(ruleDuplicateName), func(p *patched) {
			p.replace(p.entry("PAIR/DUP_X.;1", "NM")+5, "dup-x", "dup-Y")
			p.replace(p.identifier(jolietTree, "pair/dup-x"), "\x00d\x00u\x00p\x00-\x00x", "\x00d\x00u\x00p\x00-\x00Y")
		}},
		{"name twice", []string{ruleDuplicateName, ruleTreeDiverges}, func(p *patched) {
			p.replace(p.identifier(jolietTree, "pair/dup-x"), "\x00d\x00u\x00p\x00-\x00x", "\x00d\x00u\x00p\x00-\x00y")
			p.replace(p.entry("PAIR/DUP_X.;1", "NM")+5, "dup-x", "dup-y")
		}},
		{"lower case identifier", only(rulePrimaryName), func(p *patched) {
			p.replace(p.identifier(primaryTree, "ZONE/INNER/FILE.;1"), "FILE", "fILE")
		}},
	}
}

func TestCheckGoodImages(t *testing.T) {
	for name, files := range map[string][]File{"small": smallTree(), "patch": patchTree(), "stress": stressTree(500), "empty": nil} {
		t.Run(name, func(t *testing.T) {
			data := imageBytes(t, files)
			for _, f := range Check(bytes.NewReader(data), int64(len(data))) {
				t.Errorf("%s: %s", f.Rule, f)
			}
		})
	}
}

// TestFaults damages one thing at a time. Check must report exactly the intended rules, and Open must fail exactly when
// one of them requires it.
func TestFaults(t *testing.T) {
	for _, f := range faults() {
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			p := newPatched(t)
			f.patch(p)
			r, size := p.reader()
			found, refused := map[string]bool{}, false
			findings := Check(r, size)
			for _, finding := range findings {
				found[finding.Rule] = true
				refused = refused || ruleByID(finding.Rule).Refused
			}
			if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, slices.Sorted(slices.Values(f.rules))) {
				t.Errorf("Check applies %q, want %q: %v", got, f.rules, findings)
			}
			_, err := Open(r, size)
			if refused != (err != nil) {
				t.Errorf("Open: %v, want refusal: %v", err, refused)
			}
			if err != nil && (report.CodeOf(err) != report.Corrupt || len(report.Hints(err)) == 0) {
				t.Errorf("Open: %v has code %s and hints %q", err, report.CodeOf(err), report.Hints(err))
			}
		})
	}
}

func TestRules(t *testing.T) {
	broken := map[string]bool{
		ruleUnreadable: true, ruleSecondOpinion: true, ruleSecondGap: true, // these have tests of their own
	}
	for _, f := range slices.Concat(faults(), formatFaults()) {
		for _, rule := range f.rules {
			broken[rule] = true
		}
	}
	seen := map[string]bool{}
	for _, r := range Rules() {
		if !broken[r.ID] {
			t.Errorf("no test breaks %s", r.ID)
		}
		if seen[r.ID] || !strings.HasPrefix(r.ID, "iso-") || !strings.HasSuffix(r.Doc, ".") || r.Refused && r.Severity != report.SeverityError {
			t.Errorf("bad row %+v", r)
		}
		seen[r.ID] = true
	}
}

func TestFindingsAreBounded(t *testing.T) {
	var files []File
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		files = append(files, textFile("d/"+string(c), string(c)))
	}
	data := imageBytes(t, files)
	uid := []byte("PX\x24\x01")
	for at := bytes.Index(data, uid); at >= 0 && at < len(data); {
		data[at+20], data[at+27] = 1, 1
		next := bytes.Index(data[at+1:], uid)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	findings := Check(bytes.NewReader(data), int64(len(data)))
	if len(findings) != maxFindingsPerRule+1 || !strings.Contains(findings[0].Message, "8 more findings") {
		t.Errorf("%d findings, the first is %v", len(findings), findings[0])
	}
}
