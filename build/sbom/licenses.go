package sbom

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
)

// licenseIDs are the identifiers of the SPDX License List that packages name most. Others are written as a reference with the text of the package,
// which SPDX allows for every license.
var licenseIDs = sync.OnceValue(func() map[string]string {
	ids := map[string]string{}
	for id := range strings.FieldsSeq(`0BSD AFL-2.0 AFL-2.1 AFL-3.0 AGPL-3.0-only AGPL-3.0-or-later Apache-1.0 Apache-1.1 Apache-2.0 APSL-2.0 Artistic-1.0
Artistic-1.0-Perl Artistic-2.0 BlueOak-1.0.0 BSD-1-Clause BSD-2-Clause BSD-2-Clause-Patent BSD-3-Clause BSD-3-Clause-Clear
BSD-4-Clause BSD-4-Clause-UC BSL-1.0 bzip2-1.0.6 CC-BY-3.0 CC-BY-4.0 CC-BY-SA-3.0 CC-BY-SA-4.0 CC0-1.0 CDDL-1.0 CDDL-1.1 CPL-1.0
curl ECL-2.0 EFL-2.0 EPL-1.0 EPL-2.0 EUPL-1.1 EUPL-1.2 FSFAP FSFUL FSFULLR FTL GFDL-1.1-only GFDL-1.1-or-later GFDL-1.2-only
GFDL-1.2-or-later GFDL-1.3-only GFDL-1.3-or-later GPL-1.0-only GPL-1.0-or-later GPL-2.0-only GPL-2.0-or-later GPL-3.0-only
GPL-3.0-or-later HPND ICU IJG ImageMagick IPL-1.0 ISC JSON LGPL-2.0-only LGPL-2.0-or-later LGPL-2.1-only LGPL-2.1-or-later
LGPL-3.0-only LGPL-3.0-or-later Libpng libpng-2.0 libtiff LPL-1.02 MIT MIT-0 MIT-CMU MirOS MPL-1.0 MPL-1.1 MPL-2.0 MS-PL MS-RL NCSA
NTP OFL-1.1 OLDAP-2.8 OpenSSL OSL-3.0 PHP-3.0 PHP-3.01 PostgreSQL PSF-2.0 Python-2.0 QPL-1.0 Ruby Sendmail SGI-B-2.0 SISSL Sleepycat
SMLNJ SSPL-1.0 TCL Unicode-3.0 Unicode-DFS-2016 Unlicense UPL-1.0 Vim W3C WTFPL X11 Xnet XFree86-1.1 Zlib zlib-acknowledgement
ZPL-2.0 ZPL-2.1`) {
		ids[strings.ToLower(id)] = id
	}
	return ids
})

// licenseExceptions are the exceptions of the SPDX list that packages name most.
const licenseExceptions = ` Autoconf-exception-2.0 Autoconf-exception-3.0 Bison-exception-2.2 Classpath-exception-2.0 Font-exception-2.0
GCC-exception-2.0 GCC-exception-3.1 Libtool-exception LLVM-exception OpenJDK-assembly-exception-1.0 Linux-syscall-note
openvpn-openssl-exception u-boot-exception-2.0 `

// debianNames are names of licenses in Debian for those of SPDX.
var debianNames = map[string]string{
	"expat": "MIT", "mit/x11": "MIT", "bsd-2-clauses": "BSD-2-Clause", "bsd-3-clauses": "BSD-3-Clause", "psf-2": "PSF-2.0", "artistic": "Artistic-1.0-Perl",
	"zlib/libpng": "Zlib", "apache-2": "Apache-2.0", "boost-1.0": "BSL-1.0", "mpl-2": "MPL-2.0", "cc0": "CC0-1.0",
}

// debianLicense translates the license of a copyright file, one name or names with "or" and "and".
func debianLicense(text string) string {
	words := strings.Fields(strings.ReplaceAll(text, ",", " "))
	for i, word := range words {
		switch lower := strings.ToLower(word); {
		case lower == "or" || lower == "and":
			words[i] = strings.ToUpper(word)
		case debianNames[lower] != "":
			words[i] = debianNames[lower]
		default:
			words[i] = gnuLicense(word)
		}
	}
	joined := strings.Join(words, " ")
	if strings.Contains(joined, " OR ") || strings.Contains(joined, " AND ") {
		return "(" + joined + ")"
	}
	return joined
}

// gnuLicense translates names such as GPL-2+ and LGPL-2.1.
func gnuLicense(word string) string {
	name, version, ok := strings.Cut(word, "-")
	version, later := strings.CutSuffix(version, "+")
	if !ok || !strings.Contains(" GPL LGPL AGPL GFDL ", " "+name+" ") || strings.Trim(version, "0123456789.") != "" || version == "" {
		return word
	}
	if !strings.Contains(version, ".") {
		version += ".0"
	}
	if later {
		return name + "-" + version + "-or-later"
	}
	return name + "-" + version + "-only"
}

// expression is a license in the form of SPDX, and the licenses of it that are not in the list of SPDX, with their texts.
type expression struct {
	text       string
	references map[string]string // identifier to text
}

// parseLicense returns the expression for what a package states. A text that is not an expression becomes one reference; the result is empty
// for an empty text.
func parseLicense(text string) expression {
	e := &licenseParser{expression: expression{references: map[string]string{}}}
	if text == "" {
		return e.expression
	}
	e.tokens = strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text))
	if err := e.parse(0); err != nil || len(e.tokens) > 0 {
		e.expression = expression{references: map[string]string{}}
		e.text = e.reference(text)
	}
	return e.expression
}

type licenseParser struct {
	expression
	tokens []string
}

var errNotAnExpression = errors.New("not an expression")

func (p *licenseParser) parse(depth int) error {
	const deepest = 16
	if depth > deepest {
		return errNotAnExpression
	}
	for {
		if err := p.term(depth); err != nil {
			return err
		}
		if len(p.tokens) == 0 || p.tokens[0] == ")" {
			return nil
		}
		operator := strings.ToUpper(p.tokens[0])
		if operator != "AND" && operator != "OR" {
			return errNotAnExpression
		}
		p.text += " " + operator + " "
		p.tokens = p.tokens[1:]
	}
}

// term reads a license, with an exception if it has one, or an expression in parentheses.
func (p *licenseParser) term(depth int) error {
	if len(p.tokens) == 0 {
		return errNotAnExpression
	}
	token := p.tokens[0]
	p.tokens = p.tokens[1:]
	switch {
	case token == "(":
		p.text += "("
		if err := p.parse(depth + 1); err != nil {
			return err
		}
		if len(p.tokens) == 0 {
			return errNotAnExpression
		}
		p.tokens = p.tokens[1:]
		p.text += ")"
		return nil
	case slices.Contains([]string{")", "AND", "OR", "WITH"}, strings.ToUpper(token)):
		return errNotAnExpression
	}
	if len(p.tokens) > 1 && strings.EqualFold(p.tokens[0], "WITH") {
		exception := p.tokens[1]
		p.tokens = p.tokens[2:]
		if id := knownLicense(token); id != "" && strings.Contains(licenseExceptions, " "+exception+" ") {
			p.text += id + " WITH " + exception
		} else {
			p.text += p.reference(token + " WITH " + exception)
		}
		return nil
	}
	if id := knownLicense(token); id != "" {
		p.text += id
	} else {
		p.text += p.reference(token)
	}
	return nil
}

// knownLicense returns the identifier of a license in the list of SPDX, empty for others. GPL-2.0 and GPL-2.0+ are old names.
func knownLicense(name string) string {
	ids, lower := licenseIDs(), strings.ToLower(name)
	old, later := strings.CutSuffix(lower, "+")
	switch {
	case ids[lower] != "":
		return ids[lower]
	case later && ids[old+"-or-later"] != "":
		return ids[old+"-or-later"]
	case later && ids[old] != "":
		return ids[old] + "+"
	case !later && ids[lower+"-only"] != "":
		return ids[lower+"-only"]
	}
	return ""
}

// reference returns the identifier of a license that is not in the list of SPDX.
func (p *licenseParser) reference(text string) string {
	id := strings.Map(func(r rune) rune {
		if r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '-' {
			return r
		}
		return '-'
	}, text)
	const longest = 40
	if id != text || len(id) > longest {
		sum := sha256.Sum256([]byte(text))
		id = strings.Trim(id[:min(len(id), longest)], "-") + "-" + hex.EncodeToString(sum[:4])
	}
	id = "LicenseRef-" + strings.TrimPrefix(id, "LicenseRef-")
	p.references[id] = text
	return id
}
