package oci

import (
	"net/http"
	"strings"
)

// bearerFirst answers the Bearer challenge of a registry that offers several: the library answers the first that it reads,
// although registries that offer Basic as well may not take it from everybody, and never from the anonymous.
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

// bearerChallenge returns the first Bearer challenge with a realm, with what follows it in its header; "" when there is none.
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

// afterComma returns what follows the first comma outside of a quoted string.
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
