package engine

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// ordinary are the functions that a person has reviewed and found to need no entry in a table: the work of
// reading their texts twice, and a result that is no larger than these.
const ordinary = `
	abbrev abbrevboth adler32sum b32dec b64dec cat clean contains dir hasPrefix hasSuffix hello isAbs osBase osClean osDir osExt osIsAbs plural
	toString toStrings
	add add1 atoi biggest ceil div float64 floor int int64 max maxf min minf mod mul round sub toDecimal
	ago dateModify date_modify duration durationRound htmlDate htmlDateInZone mustDateModify mustToDate must_date_modify now toDate unixEpoch
	all any compact deepEqual empty has hasKey mustHas initial kindIs kindOf list mustCompact mustInitial mustRest mustReverse omit pick pluck rest reverse tuple typeIs typeIsLike
	typeOf
	fail getHostByName lookup uuidv4`

// replaced are the functions whose results are as large as a number in the call: package chart gives others in their place, which bound it.
const replaced = `randAlpha randAlphaNum randAscii randBytes randInt randNumeric`

// TestFunctionsAreClassified fails for a function, as of a new version of sprig, that has no class.
func TestFunctionsAreClassified(t *testing.T) {
	b := newBudget(t.Context())
	all := b.functions()
	known := map[string]string{}
	classify := func(table string, names []string) {
		for _, name := range names {
			if _, ok := all[name]; !ok {
				t.Errorf("%s: there is no function %s: take it out", table, name)
			}
			if other := known[name]; other != "" {
				t.Errorf("%s is in %s and in %s: only the latter counts", name, other, table)
			}
			known[name] = table
		}
	}
	classify("costs", slices.Sorted(maps.Keys(costs)))
	classify("ordinary", strings.Fields(ordinary))
	classify("replaced", strings.Fields(replaced))
	classify("textFunctions", slices.Sorted(maps.Keys(b.textFunctions())))
	classify("listFunctions", slices.Sorted(maps.Keys(b.listFunctions())))
	classify("expressions", slices.Sorted(maps.Keys(b.expressions())))
	classify("encoders", slices.Sorted(maps.Keys(b.encoders())))
	for name := range opaque {
		if _, ok := all[name]; !ok && name != "include" && name != "tpl" {
			t.Errorf("opaque: there is no function %s: take it out", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if known[name] == "" {
			t.Errorf("%s: find out what it takes at most, and add it to costs, or to ordinary", name)
		}
	}
}
