package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// service is the work of one service for a server, and the services that it asks then.
type service struct {
	says  string
	needs []string // in this order; the environment has the address of each: NETWORK_URL
}

var services = map[string]service{
	"identity":  {says: "identity knows you"},
	"network":   {says: "network gives "},
	"conductor": {says: "conductor builds it", needs: []string{"network"}},
	"scheduler": {says: "scheduler chooses host-1", needs: []string{"conductor"}},
	"compute":   {says: "compute boots", needs: []string{"identity", "scheduler"}},
}

// newHandler answers for a service: /boot for everybody who brings a token, and /token in identity, which knows by KEY
// whom it has given one.
func newHandler(name string, getenv func(string) string) (http.Handler, error) {
	own, ok := services[name]
	if !ok {
		return nil, fmt.Errorf("there is no service %q", name)
	}
	urls := make([]string, len(own.needs))
	for i, need := range own.needs {
		if urls[i] = getenv(strings.ToUpper(need) + "_URL"); urls[i] == "" {
			return nil, fmt.Errorf("%s needs %s: set %s_URL", name, need, strings.ToUpper(need))
		}
	}
	if name == "network" {
		own.says += cmp.Or(getenv("FIRST_ADDRESS"), "10.0.0.7")
	}
	mux := http.NewServeMux()
	issued := ""
	if name == "identity" {
		key := getenv("KEY")
		if key == "" {
			return nil, fmt.Errorf("identity needs a key: set KEY")
		}
		issued = sign(key)
		mux.HandleFunc("GET /token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, issued) })
	}
	mux.HandleFunc("GET /boot", func(w http.ResponseWriter, r *http.Request) {
		token := r.FormValue("token")
		if issued != "" && !hmac.Equal([]byte(token), []byte(issued)) {
			http.Error(w, "identity does not know you", http.StatusForbidden)
			return
		}
		chain := []string{own.says}
		for i, need := range own.needs {
			answer, status, err := ask(r, urls[i], token)
			if err != nil {
				http.Error(w, fmt.Sprintf("%s cannot reach %s: %v", name, need, err), http.StatusBadGateway)
				return
			} else if status != http.StatusOK {
				http.Error(w, answer, status)
				return
			}
			chain = append(chain, answer)
		}
		fmt.Fprint(w, strings.Join(chain, ", "))
	})
	return mux, nil
}

// sign makes the token of the only user there is.
func sign(key string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("user"))
	return hex.EncodeToString(mac.Sum(nil))
}

// client opens a connection for each request: a Service chooses a pod for each, and one that has gone is not asked again.
var client = http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// ask hands a request on to another service.
func ask(r *http.Request, address, token string) (answer string, status int, err error) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, address+"/boot?token="+url.QueryEscape(token), http.NoBody)
	if err != nil {
		return "", 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	return strings.TrimSpace(string(body)), response.StatusCode, err
}
