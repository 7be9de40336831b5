package ramp

import (
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/storable"
	"github.com/token-ramp/ramp-go/internal/transport"
)

// Lang is a language of the web pages (interface 2.1).
type Lang string

// The languages of the interface.
const (
	LangChinese            Lang = "zh"
	LangEnglish            Lang = "en"
	LangTraditionalChinese Lang = "zh-Hant"
)

// CatalogParams are the parameters of the catalog view (interface 2.1).
type CatalogParams struct {
	ProjectID string  // required: issued by the service
	Network   Network // required: Mainnet or Testnet
	Lang      Lang    // optional: the language of the page; one that the service lacks is left out

	// SessionID (the user's game character) and AccessToken are required. The service sends both back
	// in headers, so no white space may surround them, and no control character may be in them. A
	// SessionID has at most 1,024 bytes, and a token does not begin with Bearer.
	SessionID   string
	AccessToken AccessToken
}

// CatalogURL returns the URL of the catalog view (interface 2.1, 4.2). rampURL is the
// {ramp_url} of the interface, with or without a path. It must be https, unless its host
// is one for which [RPCConfig].URL may be http. The URL contains the access token: pass
// it to the player's webview only, and keep it out of logs. The error is an
// [*InvalidError].
func CatalogURL(rampURL string, c CatalogParams) (string, error) {
	var p problems
	base := checkPages(&p, rampURL)
	p.requireTyped(c.ProjectID, "projectId")
	checkHeaderText(&p, "sessionId", c.SessionID)
	checkHeaderText(&p, "accessToken", c.AccessToken.Reveal())
	checkNetwork(&p, "network", c.Network)
	if !slices.Contains([]Lang{LangChinese, LangEnglish, LangTraditionalChinese}, c.Lang) {
		c.Lang = ""
	}
	if err := p.err(); err != nil {
		return "", err
	}
	return base + "/catalog" + query(
		"projectId", c.ProjectID,
		"sessionId", c.SessionID,
		"accessToken", c.AccessToken.Reveal(),
		"platform", "web",
		"network", string(c.Network),
		"lang", string(c.Lang),
	), nil
}

// ExchangeParams are the parameters of the exchange view (interface 2.1).
type ExchangeParams struct {
	UUID        uuid.UUID   // required: from [Client.Initialize], valid for 5 minutes
	AccessToken AccessToken // required: as in [CatalogParams]
	SessionID   string      // required: the user's session or account; as in [CatalogParams]
	Network     Network     // required: Mainnet or Testnet
}

// ExchangeURL returns the URL of the exchange view, where the player mints or burns
// (interface 2.1, 4.2). rampURL and the error are as in [CatalogURL], and this URL
// contains the access token too. The UUID is written with hyphens; for a service that writes it
// in another way, use [Initialization.ExchangeURL].
func ExchangeURL(rampURL string, e ExchangeParams) (string, error) {
	return exchangeURL(rampURL, e.UUID.String(), e)
}

// exchangeURL writes the UUID as id.
func exchangeURL(rampURL, id string, e ExchangeParams) (string, error) {
	var p problems
	base := checkPages(&p, rampURL)
	p.require(e.UUID != uuid.Nil, "uuid")
	checkHeaderText(&p, "accessToken", e.AccessToken.Reveal())
	checkHeaderText(&p, "sessionId", e.SessionID)
	checkNetwork(&p, "network", e.Network)
	if err := p.err(); err != nil {
		return "", err
	}
	return base + "/exchange" + query(
		"uuid", id,
		"accessToken", e.AccessToken.Reveal(),
		"sessionId", e.SessionID,
		"network", string(e.Network),
	), nil
}

// checkPages returns the base URL of the pages.
func checkPages(p *problems, rampURL string) string {
	base := checkBase(p, "rampURL", rampURL, false)
	for _, page := range []string{"/catalog", "/exchange"} {
		if strings.HasSuffix(base, page) {
			p.add("rampURL", "must be the address before %s", page)
		}
	}
	return base
}

// checkBase returns the base URL of a service without trailing slashes.
func checkBase(p *problems, path, base string, insecure bool) string {
	clean, problem := transport.Base(base, insecure)
	if problem != "" {
		p.add(path, "%s", problem)
	}
	return clean
}

// checkHeaderText rejects an ID or a token that would not come back unchanged in a
// header: the player could not be authenticated, or the order not be matched.
func checkHeaderText(p *problems, path, text string) {
	token, _, scheme := strings.Cut(text, " ")
	switch {
	case path == "accessToken" && text == redacted:
		p.add(path, "must be the token itself, not how it is printed: see AccessToken")
	case path == "accessToken" && scheme && strings.EqualFold(token, "Bearer"):
		p.add(path, "must be the token alone: the service writes Bearer before it")
	case path == "sessionId" && len(text) > storable.MaxText:
		p.add(path, "must have at most %d bytes, because it is stored with an order, and not %d",
			storable.MaxText, len(text))
	case text == "":
		p.add(path, "is required")
	case strings.TrimSpace(text) != text:
		p.add(path, "must not begin or end with white space")
	case !isHeaderText(text):
		p.add(path, "must be valid UTF-8 without control characters")
	}
}

func checkNetwork(p *problems, path string, n Network) {
	if n != Mainnet && n != Testnet {
		p.add(path, "must be mainnet or testnet")
	}
}

// query writes names and values in the given order, and omits empty values.
func query(pairs ...string) string {
	var parts []string
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			// Write a space as %20, which every decoder understands, unlike a plus.
			parts = append(parts, pair[0]+"="+strings.ReplaceAll(url.QueryEscape(pair[1]), "+", "%20"))
		}
	}
	return "?" + strings.Join(parts, "&")
}
