package main

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/solutionctl/example-solution/api"
)

//go:embed page.html style.css
var files embed.FS

var pageTemplate = template.Must(template.ParseFS(files, "page.html"))

// view is the content of the page.
type view struct {
	Namespace string
	Version   string
	TextLabel string // what users know the text of a Website as
	Rows      []row
	Banners   []api.Banner
	Problem   string // why the last request failed
}

// row is one Website.
type row struct {
	api.Website
	Text    string // shown where there are banners
	Wanted  int32
	Reason  string
	Message string
}

// Handler returns the user interface. All its links are relative, so that it works below any path of a proxy.
// Where people log in, each request is sent with the token that it came with, and with no rights of the program.
func Handler(websites *Websites, login bool) http.Handler {
	as := func(next func(*Websites, http.ResponseWriter, *http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !login {
				next(websites, w, r)
				return
			}
			token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !ok || token == "" {
				w.Header().Set("WWW-Authenticate", "Bearer")
				http.Error(w, "log in first", http.StatusUnauthorized)
				return
			}
			theirs, err := websites.As(token)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			next(theirs, w, r)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /style.css", http.FileServerFS(files))
	mux.HandleFunc("GET /{$}", as(func(websites *Websites, w http.ResponseWriter, r *http.Request) {
		websites.show(w, r, nil)
	}))
	mux.HandleFunc("POST /{$}", as(func(websites *Websites, w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		spec := api.WebsiteSpec{
			Title: r.PostFormValue("title"),
			Theme: api.Theme(r.PostFormValue("theme")),
		}
		*api.Text(&spec) = r.PostFormValue("message")
		err := websites.Create(r.Context(), r.PostFormValue("name"), spec)
		if err != nil {
			websites.show(w, r, err)
			return
		}
		w.Header().Set("Location", "./") // relative on purpose; http.Redirect would make it absolute
		w.WriteHeader(http.StatusSeeOther)
	}))
	// Another site that the user has open must not create Websites in the user's name.
	return secure(http.NewCrossOriginProtection().Handler(mux))
}

// show answers with the page; with the reason and the status of problem when there is one.
func (w *Websites) show(response http.ResponseWriter, r *http.Request, problem error) {
	sites, err := w.List(r.Context())
	if problem == nil {
		problem = err
	}
	v := view{Namespace: w.namespace, Version: version, TextLabel: api.TextLabel}
	if api.HasBanners {
		if v.Banners, err = w.Banners(r.Context()); problem == nil {
			problem = err
		}
	}
	for _, s := range sites {
		v.Rows = append(v.Rows, newRow(s))
	}
	status := http.StatusOK
	if problem != nil {
		v.Problem, status = problem.Error(), statusOf(problem)
	}
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, v); err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	response.Header().Set("Content-Type", "text/html; charset=utf-8")
	response.Header().Set("Cache-Control", "no-store")
	response.WriteHeader(status)
	_, _ = io.Copy(response, &page) // fails when the user has gone
}

func newRow(site api.Website) row {
	r := row{Website: site, Wanted: 1, Reason: "Pending"}
	if api.HasBanners {
		r.Text = *api.Text(&site.Spec)
	}
	if site.Spec.Replicas != nil {
		r.Wanted = *site.Spec.Replicas
	}
	if ready := meta.FindStatusCondition(site.Status.Conditions, api.Ready); ready != nil {
		r.Reason, r.Message = ready.Reason, ready.Message
	}
	return r
}

// statusOf passes on the status from the Kubernetes API; without one, it is that of a bad gateway.
func statusOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code >= 400 {
		return int(status.Status().Code)
	}
	return http.StatusBadGateway
}

// secure forbids the browser everything that the page does not need.
func secure(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}
