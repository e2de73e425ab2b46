package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// freeAddress is the script command `free-address NAME`: it sets a variable to an address that nothing listens on.
func freeAddress(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: free-address NAME")
	}
	address, err := unusedAddress()
	ts.Check(err)
	ts.Setenv(args[0], address)
}

// unusedAddress returns an address that nothing listens on.
func unusedAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// probe is the script command `probe ADDRESS`: it connects, sends nothing and waits for the other side to close the
// connection.
func probe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: probe ADDRESS")
	}
	conn, err := net.Dial("tcp", args[0])
	ts.Check(err)
	ts.Check(conn.(*net.TCPConn).CloseWrite())
	_, err = io.Copy(io.Discard, conn)
	ts.Check(errors.Join(err, conn.Close()))
}

// fetch is the script command `fetch STATUS URL FILE`: it asks until the answer has the status, and writes its body to a
// file. CA_FILE is the authority of an https URL.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: fetch STATUS URL FILE")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	deadline := time.After(time.Minute)
	for {
		body, err := fetchOnce(ts, args[1], want)
		if err == nil {
			ts.Check(os.WriteFile(ts.MkAbs(args[2]), body, 0o644))
			return
		}
		select {
		case <-deadline:
			ts.Fatalf("%v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func fetchOnce(ts *testscript.TestScript, url string, want int) ([]byte, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if file := ts.Getenv("CA_FILE"); file != "" {
		data, err := os.ReadFile(ts.MkAbs(file))
		if err != nil {
			return nil, err // it is not there yet
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(data)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	response, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != want {
		err = fmt.Errorf("%s: status %d, want %d: %s", url, response.StatusCode, want, body)
	}
	return body, err
}
