package chart

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"
)

// maxRepeat bounds the result of one call of a function, in characters or entries.
const maxRepeat = 1 << 20

// functions replaces template functions that differ from call to call, and those that could fill the memory.
type functions struct {
	ctx     context.Context //nolint:containedctx // templates have no other way to learn that their time is over
	seed    string
	options Options
	memory  *memory // nil where stand-ins are wanted
	lookups lookups

	mu    sync.Mutex
	names map[string]bool
	calls uint64
}

func newFunctions(ctx context.Context, seed string, o Options) *functions {
	f := &functions{ctx: ctx, seed: seed, options: o, names: map[string]bool{}, lookups: lookups{find: o.Lookup, answers: map[string]map[string]any{}}}
	if !o.StandIns {
		f.memory = newMemory(o.Generated, o.Now)
	}
	return f
}

// used returns the names of the functions that were called, sorted.
func (f *functions) used() []string {
	return slices.Sorted(maps.Keys(f.names))
}

// table returns the functions that replace those of Helm's engine.
func (f *functions) table() template.FuncMap {
	table := template.FuncMap{
		"ago":    f.ago,
		"lookup": f.lookups.function(f.ctx),
	}
	if f.memory != nil {
		f.memory.remembering(table, f.note)
	} else {
		f.standIns(table)
	}
	return table
}

func (f *functions) note(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[name] = true
}

// standIns gives values that look like the real ones. They depend on the chart, the function, its arguments and the
// number of the call, so two passwords of a chart differ and two renderings do not.
func (f *functions) standIns(table template.FuncMap) {
	const digits, letters = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for name, alphabet := range map[string]string{
		"randAlphaNum": digits + letters, "randAlpha": letters, "randAscii": letters + digits + "-_.", "randNumeric": digits,
	} {
		table[name] = func(count int) (string, error) { return f.text(name, alphabet, count) }
	}
	table["randBytes"] = func(count int) (string, error) {
		text, err := f.text("randBytes", letters, count)
		return base64.StdEncoding.EncodeToString([]byte(text)), err
	}
	table["randInt"] = func(low, high int) (int, error) {
		if high <= low {
			return 0, fmt.Errorf("randInt: %d is not below %d", low, high)
		}
		sum := f.sum("randInt")
		return low + int(binary.BigEndian.Uint64(sum[:])>>1)%(high-low), nil //nolint:gosec // 63 bits fit
	}
	table["shuffle"] = func(text string) string { f.note("shuffle"); return text }
	table["uuidv4"] = func() string {
		sum := f.sum("uuidv4")
		sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
		text := hex.EncodeToString(sum[:16])
		return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
	}
	table["bcrypt"] = func(password string) string { return f.opaque("bcrypt", password) }
	table["htpasswd"] = func(user, password string) string { return user + ":" + f.opaque("htpasswd", password) }
	table["encryptAES"] = func(_, text string) string { return f.opaque("encryptAES", text) }
	table["genPrivateKey"] = func(kind string) string { return f.pem("genPrivateKey", strings.ToUpper(kind)+" PRIVATE KEY") }
	table["now"] = func() time.Time { f.note("now"); return f.options.Now.UTC() }
	for _, name := range []string{"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey"} {
		table[name] = func(...any) map[string]any {
			return map[string]any{"Cert": f.pem(name, "CERTIFICATE"), "Key": f.pem(name, "RSA PRIVATE KEY")}
		}
	}
}

func (f *functions) sum(name string, arguments ...string) [sha256.Size]byte {
	f.note(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return sha256.Sum256(fmt.Appendf(nil, "%s %s %d %q", f.seed, name, f.calls, arguments))
}

func (f *functions) text(name, alphabet string, count int) (string, error) {
	if err := bounded(count); err != nil {
		return "", err
	}
	text := make([]byte, 0, count)
	for sum := f.sum(name); len(text) < count; sum = sha256.Sum256(sum[:]) {
		for _, b := range sum[:min(len(sum), count-len(text))] {
			text = append(text, alphabet[int(b)%len(alphabet)])
		}
	}
	return string(text), nil
}

func (f *functions) opaque(name, argument string) string {
	sum := f.sum(name, argument)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (f *functions) pem(name, kind string) string {
	return fmt.Sprintf("-----BEGIN %s-----\n%s\n-----END %s-----\n", kind, f.opaque(name, kind), kind)
}

func (f *functions) ago(value any) string {
	f.note("ago")
	then, ok := value.(time.Time)
	if !ok {
		return "0s"
	}
	return f.options.Now.Sub(then).Round(time.Second).String()
}

func bounded(count int) error {
	if count < 0 || count > maxRepeat {
		return fmt.Errorf("%d is not between 0 and %d", count, maxRepeat)
	}
	return nil
}
