package oci_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestChallenges: of several challenges the one for a token is answered, in whatever order and form they come.
func TestChallenges(t *testing.T) {
	const basic = `Basic realm="a, Bearer realm=\"b"`
	reg := newRegistry(t)
	bearer := `Bearer realm="http://` + reg.host + `/token",service="test"`
	password := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:secret"))
	for _, test := range []struct {
		name    string
		headers []string
		answer  string // that the registry takes
		login   bool
		good    bool
	}{
		{"bearer", []string{bearer}, "Bearer t", false, true},
		{"bearer first", []string{bearer, basic}, "Bearer t", true, true},
		{"basic first", []string{basic, bearer}, "Bearer t", true, true},
		{"basic first, anonymous", []string{basic, bearer}, "Bearer t", false, true},
		{"one header, basic first", []string{basic + ", " + bearer}, "Bearer t", true, true},
		{"one header, bearer first", []string{bearer + "," + basic}, "Bearer t", true, true},
		{"lower case, after an unknown one", []string{"Negotiate", basic, "b" + bearer[1:]}, "Bearer t", true, true},
		{"basic only", []string{basic}, password, true, true},
		{"basic only, anonymous", []string{basic}, password, false, false},
		{"basic, and bearer without a realm", []string{basic, "Bearer"}, password, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			reg.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				switch {
				case r.URL.Path == "/token":
					if login := r.Header.Get("Authorization") == password; login != test.login {
						t.Errorf("the token was asked for with a login: %v", login)
					}
					_, _ = w.Write([]byte(`{"token":"t"}`))
				case r.Header.Get("Authorization") == test.answer:
					next.ServeHTTP(w, r)
				default:
					w.Header()["Www-Authenticate"] = test.headers
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			var o oci.Options
			if test.login {
				o.Keychain = keychain{"me", "secret"}
			}
			r, _ := patient(t, o)
			_, err := r.Resolve(t.Context(), testRef, "docker://"+reg.host+"/acme/operator:1.0.0")
			switch {
			case !test.good:
				checkError(t, err, report.Unavailable, "401", "docker login "+reg.host)
			case err != nil:
				t.Error(strings.TrimSpace(err.Error()))
			}
		})
	}
}
