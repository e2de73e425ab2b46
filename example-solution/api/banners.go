//go:build banners_v1beta1

package api

// HasBanners tells whether this release has the Banner.
const HasBanners = true
