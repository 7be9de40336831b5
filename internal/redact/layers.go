package redact

import (
	"bytes"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxLayers limits how often a text is unescaped. JSON in a URL in an HTML page has
// three layers of escapes.
const maxLayers = 4

// layer is a text after some rounds of unescaping, folded to lower case.
type layer struct {
	text []byte
	from []int // for each byte, where it or its escape begins in the source; nil if nothing was escaped
	end  int   // length of the source
}

// layers yields a text, then the text unescaped once, twice, and so on.
func layers(text string) iter.Seq[layer] {
	return func(yield func(layer) bool) {
		l := layer{text: []byte(text), end: len(text)}
		for round := 0; ; round++ {
			next, changed := l.unescape()
			fold(l.text)
			if !yield(l) || !changed || round == maxLayers {
				return
			}
			l = next
		}
	}
}

// fold removes differences between encoders: it converts A to Z to lower case, and +,
// which is a space in a query, to a space.
func fold(text []byte) {
	for i, c := range text {
		switch {
		case 'A' <= c && c <= 'Z':
			text[i] = c + 'a' - 'A'
		case c == '+':
			text[i] = ' '
		}
	}
}

// at returns where byte i begins in the source.
func (l *layer) at(i int) int {
	switch {
	case i >= len(l.text):
		return l.end
	case l.from == nil:
		return i
	default:
		return l.from[i]
	}
}

// source returns the part of the source that bytes i to j were made of.
func (l *layer) source(i, j int) span {
	for j < len(l.text) && l.at(j) == l.at(j-1) {
		j++ // skip bytes of the same escape, like those of ö in \u00f6
	}
	return span{l.at(i), l.at(j)}
}

// unescape undoes one round of escapes of JSON, URLs and HTML, and drops invisible
// characters, such as every other byte of UTF-16. Call it before the text is folded,
// because \N is not a line break.
func (l *layer) unescape() (next layer, changed bool) {
	if !bytes.ContainsFunc(l.text, func(r rune) bool { return r == '%' || r == '\\' || r == '&' || invisible(r) }) {
		return layer{}, false
	}
	next = layer{text: make([]byte, 0, len(l.text)), from: make([]int, 0, len(l.text)), end: l.end}
	for i := 0; i < len(l.text); {
		plain, size := unescape(l.text[i:])
		if size == 0 {
			plain, size = string(l.text[i:i+1]), 1
		} else {
			changed = true
		}
		for range len(plain) {
			next.from = append(next.from, l.at(i))
		}
		next.text = append(next.text, plain...)
		i += size
	}
	return next, changed
}

// unescape reads the escape that b begins with. size is 0 if there is none.
func unescape(b []byte) (plain string, size int) {
	switch b[0] {
	case '%':
		if n, ok := number(b, 1, 3, 16); ok {
			return string([]byte{byte(n)}), 3
		}
	case '\\':
		return unescapeBackslash(b)
	case '&':
		return unescapeHTML(b)
	}
	if r, size := utf8.DecodeRune(b); invisible(r) {
		return "", size
	}
	return "", 0
}

func invisible(r rune) bool {
	return (r < ' ' || r >= 0x7f) && !unicode.IsPrint(r) && !unicode.IsSpace(r)
}

// unescapeBackslash reads the escapes in strings of JSON and most languages.
func unescapeBackslash(b []byte) (plain string, size int) {
	if len(b) < 2 {
		return "", 0
	}
	switch b[1] {
	case '/', '\\', '"', '\'':
		return string(b[1:2]), 2
	case 'b':
		return "\b", 2
	case 'f':
		return "\f", 2
	case 'n':
		return "\n", 2
	case 'r':
		return "\r", 2
	case 't':
		return "\t", 2
	case 'x':
		if n, ok := number(b, 2, 4, 16); ok {
			return string([]byte{byte(n)}), 4
		}
	case 'U':
		if n, ok := number(b, 2, 10, 16); ok {
			return string(rune(n)), 10
		}
	case 'u':
		n, ok := number(b, 2, 6, 16)
		if !ok {
			break
		}
		if len(b) >= 8 && b[6] == '\\' && b[7] == 'u' {
			if low, ok := number(b, 8, 12, 16); ok {
				if r := utf16.DecodeRune(rune(n), rune(low)); r != utf8.RuneError {
					return string(r), 12
				}
			}
		}
		return string(rune(n)), 6
	}
	return "", 0
}

// unescapeHTML reads the entities that HTML escapers write. The other named entities
// are for letters, which no escaper replaces.
func unescapeHTML(b []byte) (plain string, size int) {
	const longest = 10 // "&#1114111;"
	name, _, closed := strings.Cut(string(b[1:min(len(b), longest)]), ";")
	if !closed {
		return "", 0
	}
	size = len(name) + 2
	switch name {
	case "amp":
		return "&", size
	case "lt":
		return "<", size
	case "gt":
		return ">", size
	case "quot":
		return `"`, size
	case "apos":
		return "'", size
	}
	base := 10
	digits, numeric := strings.CutPrefix(name, "#")
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "x"); ok {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 21)
	if !numeric || err != nil {
		return "", 0
	}
	return string(rune(n)), size
}

// number reads the digits b[from:to].
func number(b []byte, from, to, base int) (uint64, bool) {
	if len(b) < to {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[from:to]), base, 32)
	return n, err == nil
}
