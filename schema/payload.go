package schema

// PayloadHead holds the images of an archive whose payload is kept: payload.json of the tar file that an import keeps.
type PayloadHead struct {
	Stamp
	Images []PayloadImage `json:"images"`
}

// PayloadImage is an image of the archive.
type PayloadImage struct {
	Ref    ImageRef `json:"name" schema:"image"`
	Digest string   `json:"digest" schema:"digest"` // sha256:…
	// Origin is the name under which the image is known outside of the archive.
	Origin string `json:"origin,omitempty"`
}
