package oci

import (
	"net/http"
	"strings"
)

// bearerFirst answers the Bearer challenge of a registry that offers several. The library answers the first one, and a
// registry may refuse Basic to some users, and always to anonymous ones.
type bearerFirst struct{ http.RoundTripper }

func (b bearerFirst) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	if bearer := bearerChallenge(resp.Header.Values("WWW-Authenticate")); bearer != "" {
		resp.Header.Set("WWW-Authenticate", bearer)
	}
	return resp, nil
}

// bearerChallenge returns the first Bearer challenge with a realm, with the rest of its header; "" when there is none.
// A header may have several challenges, separated by commas as their parameters are.
func bearerChallenge(headers []string) string {
	const scheme = "bearer "
	for _, header := range headers {
		for rest := header; rest != ""; rest = afterComma(rest) {
			rest = strings.TrimLeft(rest, " \t")
			if len(rest) > len(scheme) && strings.EqualFold(rest[:len(scheme)], scheme) && strings.Contains(strings.ToLower(rest), "realm=") {
				return rest
			}
		}
	}
	return ""
}

// afterComma returns the text after the first comma outside of a quoted string.
func afterComma(s string) string {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == ',' && !quoted:
			return s[i+1:]
		}
	}
	return ""
}
