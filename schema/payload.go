package schema

// PayloadHead is what an encoded payload, everything of an archive but its images, knows of the images.
type PayloadHead struct {
	Stamp
	Images []PayloadImage `json:"images"`
}

// PayloadImage is an image of the archive.
type PayloadImage struct {
	Ref    ImageRef `json:"name"`
	Digest string   `json:"digest"` // sha256:…
	// Origin is the name under which the image is known outside of the archive.
	Origin string `json:"origin,omitempty"`
}
