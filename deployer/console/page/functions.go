package page

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// functions are the functions of templates.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"asset":         p.asset,
		"href":          p.href,
		"external":      external,
		"url":           func(segments ...string) (string, error) { return p.href(URL(segments...)) },
		"path":          URL,
		"query":         p.query,
		"text":          Text,
		"role":          roleText,
		"count":         Count,
		"word":          func(kind string, value any) string { return Text(kind + "." + fmt.Sprint(value)) },
		"stamp":         func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") + " UTC" },
		"machine":       func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"bytes":         report.Bytes,
		"tone":          toneOf,
		"symbol":        symbolOf,
		"ident":         ident,
		"inputField":    inputField,
		"selectField":   selectField,
		"checkboxField": checkboxField,
		"described":     described,
		"exactly":       regexp.QuoteMeta,
		"few":           func(lines []string) bool { return len(lines) <= fewLines },
		"parents":       parents,
		"leaf":          leaf,
		"briefOf":       briefOf,
		"causes":        causesOf,
		"capitalized":   report.Capitalized,
		"opens":         func(c schema.Change) bool { return len(c.Fields) > 0 && len(c.Fields) <= 12 },
		"partsOf":       partsOf,
		"digestOf":      digestOf,
		"powersOf":      powersOf,
		"join":          func(words []string) string { return strings.Join(words, ", ") },
		"first":         func(list any) any { return piece(list, 0, fewLines) },
		"others":        func(list any) any { return piece(list, fewLines, math.MaxInt) },
		"next":          nextOf,
		"search":        func(label, query, table string) search { return search{Label: label, Query: query, Table: table} },
		"searchList":    func(label string, l Listing, table string) search { return search{label, l.Query, table, l.Kept()} },
		"shownOf":       func(table string, some, all int, clear *Link) shown { return shown{table, some, all, clear} },
		"state":         stateText,
		"bar":           bar,
		"percent":       func(part, whole int64) int64 { return part * 100 / max(whole, 1) },
	}
}

// fewLines can be read at once; more are folded.
const fewLines = 5

// piece is the part of any list between two places, as far as the list goes.
func piece(list any, from, to int) any {
	v := reflect.ValueOf(list)
	return v.Slice(min(from, v.Len()), min(to, v.Len())).Interface()
}

// roleText describes the permissions of the roles that every cluster has; "" for others.
func roleText(m schema.Member) string {
	if _, known := catalogue()["role."+m.Role]; !known {
		return ""
	}
	return Text("role." + m.Role)
}

// query completes a path of the console with parameters.
func (p *Pages) query(path string, pairs ...string) (string, error) {
	return p.href(Query(path, pairs...))
}

// tones of the words of documents. Other words have no tone.
var tones = map[string]Tone{
	"ready": ToneGood, "done": ToneGood, "ok": ToneGood, "yes": ToneGood, "accepted": ToneGood, "attested": ToneGood, "passed": ToneGood, "pass": ToneGood, "good": ToneGood,
	"progressing": ToneInfo, "running": ToneInfo, "started": ToneInfo, "deleting": ToneInfo, "deferred": ToneInfo, "info": ToneInfo,
	"completed": ToneGood, "note": ToneInfo, "keeps": ToneInfo, "Normal": ToneInfo,
	"Ready": ToneGood, "Running": ToneInfo, "Applying": ToneInfo, "Waiting": ToneInfo, "Blocked": ToneWarn, "Degraded": ToneWarn,
	"Interrupted": ToneWarn, "NotReady": ToneWarn, "Failed": ToneBad,
	"pending": ToneWarn, "drifted": ToneWarn, "foreign": ToneWarn, "warning": ToneWarn, "warn": ToneWarn, "replaced": ToneWarn,
	"unchecked": ToneWarn, "Warning": ToneWarn,
	"failed": ToneBad, "fail": ToneBad, "firing": ToneBad, "missing": ToneBad, "problem": ToneBad, "error": ToneBad, "no": ToneBad, "data-loss": ToneBad, "rejected": ToneBad,
	"malformed": ToneBad, "bad": ToneBad,
	"not_affected": ToneGood, "fixed": ToneGood, "affected": ToneBad, "under_investigation": ToneWarn,
}

func toneOf(word any) Tone {
	if tone, ok := tones[fmt.Sprint(word)]; ok {
		return tone
	}
	return "none"
}

// symbols of the words that have one of their own; others have that of their tone.
var symbols = map[string]string{
	"progressing": "progressing", "running": "progressing", "started": "progressing", "deleting": "progressing",
	"Running": "progressing", "Applying": "progressing", "Waiting": "progressing", "Pending": "pending",
	"pending": "pending", "drifted": "drifted", "foreign": "foreign", "missing": "missing", "skipped": "skip", "unknown": "lock",
}

var toneSymbols = map[Tone]string{ToneGood: "ready", ToneInfo: "info", ToneWarn: "warn", ToneBad: "failed"}

// symbolOf returns the name of an icon, so that no meaning depends on colour alone.
func symbolOf(word any) string {
	if symbol, ok := symbols[fmt.Sprint(word)]; ok {
		return symbol
	}
	if symbol, ok := toneSymbols[toneOf(word)]; ok {
		return symbol
	}
	return "skip"
}

// ident returns an id for an element: that of no other words. What an id cannot show of them is in a digest.
func ident(words ...string) string {
	isOther := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	text := strings.Join(words, "\x00")
	parts := strings.FieldsFunc(strings.ToLower(text), isOther)
	if !slices.Equal(parts, words) {
		digest := sha256.Sum256([]byte(text))
		parts = append(parts, hex.EncodeToString(digest[:8]))
	}
	return "f-" + strings.Join(parts, "-")
}

// The controls of a form with the ids by which labels find them.
type (
	inputControl struct {
		ID string
		Input
	}
	selectControl struct {
		ID string
		Select
	}
	checkboxControl struct {
		ID string
		Checkbox
	}
)

func inputField(form string, i Input) inputControl { return inputControl{ident(form, i.Name), i} }

func selectField(form string, s Select) selectControl { return selectControl{ident(form, s.Name), s} }

func checkboxField(form string, c Checkbox) checkboxControl {
	return checkboxControl{ident(form, c.Name, c.Value), c}
}

// described returns the ids of the elements that describe a control.
func described(id, help, problem string) string {
	var ids []string
	if problem != "" {
		ids = append(ids, id+"-problem")
	}
	if help != "" {
		ids = append(ids, id+"-help")
	}
	return strings.Join(ids, " ")
}

// empty is a place without anything, and what leads on from there.
type empty struct{ Text, Label, URL string }

// nextOf leads on with the first action that the user can take, among those with this in their address; with none where there is no such action.
func nextOf(text string, actions any, part string) empty {
	var among []Action
	switch a := actions.(type) {
	case *Action:
		if a != nil {
			among = []Action{*a}
		}
	case []Action:
		among = a
	}
	for _, a := range among {
		if a.Denied == nil && !a.Post && strings.Contains(a.URL, part) {
			return empty{text, a.Label, a.URL}
		}
	}
	return empty{Text: text}
}

// search is a field that filters a table, or the cards of a list.
type search struct {
	Label, Query, Table string
	Kept                []Hidden // what else the page is asked for
}

// shown is how many rows of a table are shown, and the link to the others.
type shown struct {
	Table      string
	Shown, All int
	Clear      *Link
}

// matches reports whether every word of a query is somewhere in the texts.
func matches(query string, texts ...string) bool {
	all := strings.ToLower(strings.Join(texts, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}
