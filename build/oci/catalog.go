package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	ofRegistry = "//" // begins a request to the whole registry, not to a repository

	listPage = 1000 // names in an answer
	maxNames = 100_000
)

// Repositories lists the repositories of a registry, HOST[:PORT], whose names begin with a prefix, in the order of the registry.
func (r *Resolver) Repositories(ctx context.Context, registry, prefix string) ([]string, error) {
	names, err := r.list(ctx, registry+"/"+strings.TrimSuffix(prefix, "/"), ofRegistry+"_catalog", func(a listAnswer) []string { return a.Repositories })
	var found []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			found = append(found, name)
		}
	}
	return found, err
}

// Tags lists the tags of a repository, HOST[:PORT]/PATH, in the order of the registry.
func (r *Resolver) Tags(ctx context.Context, repository string) ([]string, error) {
	return r.list(ctx, repository, "tags/list", func(a listAnswer) []string { return a.Tags })
}

// Ready fails unless a registry, HOST[:PORT], answers /readyz with 200, as 'solutionctl deploy serve' does when it serves all archives of its host.
func (r *Resolver) Ready(ctx context.Context, registry string) error {
	scheme := "https"
	if slices.Contains(r.o.PlainHTTP, registry) {
		scheme = "http"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+registry+"/readyz", nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: r.o.Transport, Timeout: r.idle, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return report.As(report.Unavailable, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read as far as needed
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return report.As(report.Unavailable, err)
	}
	return report.Errorf(report.Unavailable, "%s answers %s to /readyz: %s", registry, resp.Status, strings.Join(strings.Fields(string(body)), " "))
}

// listAnswer is one of the two lists that a registry gives.
type listAnswer struct {
	Repositories []string `json:"repositories"`
	Tags         []string `json:"tags"`
}

// list reads a list page by page, until one brings nothing new.
func (r *Resolver) list(ctx context.Context, repository, what string, names func(listAnswer) []string) (all []string, err error) {
	repo, err := parseRepository(repository, nil)
	if err != nil {
		return nil, err
	}
	content, err := r.content(repo)
	if err != nil {
		return nil, err
	}
	left := int64(8 * maxDocument)
	for last := ""; ; {
		page, err := content.listPage(ctx, fmt.Sprintf("%s?n=%d&last=%s", what, listPage, url.QueryEscape(last)), names, &left)
		if err != nil || len(page) == 0 || page[len(page)-1] == last {
			return all, err
		}
		if all = append(all, page...); len(all) > maxNames || left < 0 {
			return nil, report.Errorf(report.Invalid, "the registry lists more than %d names, or %d MiB", maxNames, 8*maxDocument>>20)
		}
		last = page[len(page)-1]
	}
}

// listPage reads a page of a list. Its bytes are taken from those that are left.
func (c *remoteContent) listPage(ctx context.Context, what string, names func(listAnswer) []string, left *int64) (page []string, err error) {
	err = c.each(ctx, func(e *endpoint) error {
		resp, failure := e.request(ctx, http.MethodGet, what, nil)
		if failure != nil {
			return failure
		}
		defer resp.Body.Close() //nolint:errcheck // read as far as needed
		body := &io.LimitedReader{R: resp.Body, N: maxDocument}
		defer func() { *left -= maxDocument - body.N }()
		var answer listAnswer
		if failure = json.NewDecoder(body).Decode(&answer); failure != nil {
			path, _, _ := strings.Cut(strings.TrimPrefix(what, ofRegistry), "?")
			return report.Errorf(report.Invalid, "%s: %s cannot be read: %w", e.registry(), path, failure)
		}
		page = names(answer)
		return nil
	})
	return page, err
}
