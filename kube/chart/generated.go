package chart

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"

	"github.com/solutionctl/solutionctl/schema/report"
)

// GeneratedValues has the generated values of a release, so that each rendering has the same ones: passwords stay unchanged in an
// upgrade, a repair and a rollback. It contains secrets, and is to be stored as such.
//
// A value is identified by the function, its arguments and the number of earlier calls with both. Values that another
// version of a chart does not use any more stay: a part of a chart that is switched off and on again needs its
// passwords.
type GeneratedValues struct {
	Values []GeneratedValue `json:"values"` // sorted
}

// GeneratedValue is the result of one call of a random function.
type GeneratedValue struct {
	Function  string          `json:"function"`
	Arguments string          `json:"arguments"` // their SHA-256 in hex, since they may be secret
	Call      int             `json:"call"`      // among those with the same function and arguments, from 0
	Value     json.RawMessage `json:"value"`
}

// maxGenerated bounds generated values in bytes of JSON.
const maxGenerated = 1 << 20

// Check refuses values that are too large to store.
func (m *GeneratedValues) Check() error {
	data, err := json.Marshal(m)
	if err == nil && len(data) > maxGenerated {
		err = report.Errorf(report.Refused, "the random values of a chart take %d bytes, and may take %d", len(data), maxGenerated)
	}
	return err
}

// key names the result of a call.
type key struct {
	function, arguments string
	call                int
}

// memory is generated values in use.
type memory struct {
	now     time.Time
	values  map[key]json.RawMessage
	calls   map[key]int // with call 0: how many there were
	renewed []string
}

// newMemory copies generated values, except certificates past two thirds of their life.
func newMemory(m *GeneratedValues, now time.Time) *memory {
	known := &memory{now: now, values: map[key]json.RawMessage{}, calls: map[key]int{}}
	if m == nil {
		return known
	}
	for _, v := range m.Values {
		if name, old := outlived(v.Value, now); old {
			known.renewed = append(known.renewed, name)
			continue
		}
		known.values[key{v.Function, v.Arguments, v.Call}] = v.Value
	}
	slices.Sort(known.renewed)
	return known
}

// generated returns the present values.
func (m *memory) generated() *GeneratedValues {
	generated := &GeneratedValues{Values: make([]GeneratedValue, 0, len(m.values))}
	for k, value := range m.values {
		generated.Values = append(generated.Values, GeneratedValue{k.function, k.arguments, k.call, value})
	}
	slices.SortFunc(generated.Values, func(a, b GeneratedValue) int {
		return cmp.Or(strings.Compare(a.Function, b.Function), strings.Compare(a.Arguments, b.Arguments), cmp.Compare(a.Call, b.Call))
	})
	return generated
}

// outlived reports whether a value is a certificate past two thirds of its life, and the name of its subject.
func outlived(value json.RawMessage, now time.Time) (name string, old bool) {
	var pair struct{ Cert string }
	if json.Unmarshal(value, &pair) != nil {
		return "", false // something else: a text, a number
	}
	block, _ := pem.Decode([]byte(pair.Cert))
	if block == nil {
		return "", false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", false
	}
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	return certificate.Subject.CommonName, now.After(certificate.NotBefore.Add(life / 3 * 2))
}

// remembering wraps the functions of sprig whose results differ from call to call. note learns their names.
func (m *memory) remembering(table template.FuncMap, note func(name string)) {
	original := sprig.TxtFuncMap()
	for _, name := range random {
		call := reflect.ValueOf(original[name])
		table[name] = reflect.MakeFunc(withError(call.Type()), func(arguments []reflect.Value) []reflect.Value {
			note(name)
			result, err := m.result(name, call, arguments)
			if err != nil {
				return []reflect.Value{reflect.Zero(call.Type().Out(0)), reflect.ValueOf(&err).Elem()}
			}
			return []reflect.Value{result, reflect.Zero(errorType)}
		}).Interface()
	}
	table["now"] = func() (time.Time, error) {
		note("now")
		result, err := m.result("now", reflect.ValueOf(func() time.Time { return m.now.UTC() }), nil)
		if err != nil {
			return time.Time{}, err
		}
		return result.Interface().(time.Time), nil
	}
}

// random are the functions of sprig whose results differ from call to call.
var random = []string{
	"bcrypt", "encryptAES", "genCA", "genCAWithKey", "genPrivateKey", "genSelfSignedCert", "genSelfSignedCertWithKey",
	"genSignedCert", "genSignedCertWithKey", "htpasswd", "randAlpha", "randAlphaNum", "randAscii", "randBytes", "randInt",
	"randNumeric", "shuffle", "uuidv4",
}

var errorType = reflect.TypeFor[error]()

// withError is the type of a function that may also fail.
func withError(function reflect.Type) reflect.Type {
	return reflect.FuncOf(slices.Collect(function.Ins()), []reflect.Type{function.Out(0), errorType}, function.IsVariadic())
}

// result returns the value that a call had when it was made first.
func (m *memory) result(name string, function reflect.Value, arguments []reflect.Value) (reflect.Value, error) {
	none := reflect.Value{}
	if err := sane(name, arguments); err != nil {
		return none, err
	}
	k, err := m.next(name, arguments)
	if err != nil {
		return none, err
	}
	kind := function.Type().Out(0)
	if value, ok := m.values[k]; ok {
		result := reflect.New(kind)
		if err = json.Unmarshal(value, result.Interface()); err != nil {
			return none, report.Errorf(report.Corrupt, "the remembered result of %s: %w", name, err)
		}
		return result.Elem(), nil
	}
	results := function.Call(arguments)
	if len(results) > 1 && !results[1].IsNil() {
		return none, results[1].Interface().(error)
	}
	m.values[k], err = json.Marshal(results[0].Interface())
	return results[0], err
}

// next counts a call.
func (m *memory) next(name string, arguments []reflect.Value) (key, error) {
	values := make([]any, len(arguments))
	for i, a := range arguments {
		values[i] = a.Interface()
	}
	data, err := json.Marshal(values)
	if err != nil {
		return key{}, fmt.Errorf("%s: %w", name, err)
	}
	sum := sha256.Sum256(data)
	k := key{function: name, arguments: hex.EncodeToString(sum[:])}
	call := m.calls[k]
	m.calls[k]++
	k.call = call
	return k, nil
}

// sane refuses arguments that would make sprig panic or fill the memory.
func sane(name string, arguments []reflect.Value) error {
	if name == "randInt" {
		if low, high := arguments[0].Int(), arguments[1].Int(); high <= low {
			return fmt.Errorf("randInt: %d is not below %d", low, high)
		}
		return nil
	}
	if strings.HasPrefix(name, "rand") {
		return bounded(int(arguments[0].Int()))
	}
	return nil
}
