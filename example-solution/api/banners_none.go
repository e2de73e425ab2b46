//go:build !banners_v1beta1

package api

// HasBanners reports whether this release has the Banner.
const HasBanners = false
