package rampbooks_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// awkward are books with what programs like to change: an ID of digits, one that looks like a formula, and
// amounts that have another value with another decimal sign.
func awkward(t *testing.T) (books *rampbooks.Reconciliation, lines []rampbooks.Line) {
	t.Helper()
	_, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
	for hours, id := range map[int]string{10: "007", 20: "=1+1"} {
		order := store.MintOn(t, n, rig.Token, rig.HoursAgo(hours), 495)
		order.Assets[0].ID, order.Intent.From[0].ID = id, id
		store.Keep(t, order)
	}
	thousands := rig.OrderOf(ramp.Mint, 1, rig.HoursAgo(30))
	thousands.Intent.To[0].Amount = must.Get(ramp.ParseAmount("1.234"))(t)
	minted := rig.Moved(common.Address{}, rig.Player, 1)
	minted.Value = must.Get(thousands.Intent.To[0].Amount.Units(18))(t)
	hash := n.Send(rig.HoursAgo(30).Add(time.Minute), rig.Tx{Transfers: []ramp.Transfer{minted}})
	store.Keep(t, rig.Ended(thousands, ramp.OrderSucceeded, hash, rig.HoursAgo(30).Add(2*time.Minute)))
	free := rig.Product
	free.Name, free.MintFeeBps = "pack 1,5; \"x\"", 0
	books, lines, err := sellsOf(t, store, n, rampbooks.Always(free)...).ReconcileLines(t.Context(), rig.HoursAgo(60),
		rig.Now)
	require.NoError(t, err)
	require.Empty(t, books.Findings)
	return books, lines
}

// program returns a program that reads files, or skips the test.
func program(t *testing.T, names ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("*** NOT TESTED: %s is not installed ***", names[len(names)-1])
	return ""
}

// sheet opens a CSV file in LibreOffice, in the language of an ID, with "quoted field as text", and returns
// the rows: numbers as they are, and texts in quotes.
func sheet(t *testing.T, office, file, separator, language string) (rows [][]string) {
	t.Helper()
	dir := t.TempDir()
	filter := "CSV:" + separator + ",34,76,1,," + language + ",true,false"
	run := exec.Command(office, "--headless", "-env:UserInstallation=file://"+dir+"/profile", "--infilter="+filter,
		"--convert-to", "fods", "--outdir", dir, file)
	said, err := run.CombinedOutput()
	require.NoError(t, err, string(said))
	name := strings.TrimSuffix(filepath.Base(file), ".csv") + ".fods"
	decoder := xml.NewDecoder(bytes.NewReader(must.Get(os.ReadFile(filepath.Join(dir, name)))(t)))
	inText, repeated := false, 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return rows
		}
		require.NoError(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			attrs := map[string]string{}
			for _, a := range e.Attr {
				attrs[a.Name.Local] = a.Value
			}
			switch e.Name.Local {
			case "table-row":
				rows = append(rows, nil)
			case "table-cell":
				cell := attrs["value"]
				if attrs["value-type"] == "string" {
					cell = `"`
				}
				if attrs["formula"] != "" {
					cell = "formula " + attrs["formula"]
				}
				repeated, _ = strconv.Atoi(attrs["number-columns-repeated"])
				for range max(1, repeated) {
					rows[len(rows)-1] = append(rows[len(rows)-1], cell)
				}
			case "p":
				inText = len(rows) > 0
			}
		case xml.EndElement:
			inText = inText && e.Name.Local != "p"
		case xml.CharData:
			if inText {
				last := rows[len(rows)-1]
				for i := len(last) - max(1, repeated); i < len(last) && strings.HasPrefix(last[i], `"`); i++ {
					last[i] += string(e)
				}
			}
		}
	}
}

// An accountant opens the files in the language of the computer, and reads the figures.
func TestSpreadsheetsReadTheFigures(t *testing.T) {
	office := program(t, "soffice", "libreoffice")
	books, lines := awkward(t)
	for _, c := range []struct {
		sign                rampbooks.DecimalSign
		separator, language string
	}{{rampbooks.DecimalPoint, "44", "1033"}, {rampbooks.DecimalComma, "59", "1031"}} {
		file := filepath.Join(t.TempDir(), "totals.csv")
		var text bytes.Buffer
		require.NoError(t, books.WriteTotalsCSV(&text, c.sign))
		require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))
		figures := map[string]string{}
		for _, row := range sheet(t, office, file, c.separator, c.language) {
			if len(row) > 14 {
				figures[row[6]+row[9]+row[10]] = strings.Join(row[11:15], " ")
			}
		}
		pack, none := `"pack 1,5; "x"`, `"`+rig.Token.Hex()
		want := map[string]string{
			none + `"items_taken"007`: " 500  ", none + `"items_taken"'=1+1`: " 500  ",
			none + `"tokens_moved`: "  9.9 9.9E+018", none + `"tokens_fees`: "  0.1 1E+017",
			pack + `"orders_succeeded`: "1   ", pack + `"tokens_moved`: "  1.234 1.234E+018",
		}
		for figure, amount := range want {
			assert.Equal(t, amount, figures[figure], "%s in %s: %v", figure, c.language, figures)
		}

		text.Reset()
		require.NoError(t, books.WriteLinesCSV(&text, c.sign, lines))
		require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))
		var moved []string
		for _, row := range sheet(t, office, file, c.separator, c.language) {
			if len(row) > 21 && row[5] == `"orders` {
				moved = append(moved, row[21])
			}
		}
		assert.Equal(t, []string{"1.234", "4.95", "4.95"}, moved, c.language)
	}
}

// pandas reads the columns as documented in docs/books.md.
func TestPandasReadsTheFigures(t *testing.T) {
	python := program(t, "/usr/bin/python3", "python3")
	if exec.Command(python, "-c", "import pandas").Run() != nil {
		t.Skip("*** NOT TESTED: pandas is not installed ***")
	}
	books, lines := awkward(t)
	var totals, detail bytes.Buffer
	require.NoError(t, books.WriteTotalsCSV(&totals, rampbooks.DecimalPoint))
	require.NoError(t, books.WriteLinesCSV(&detail, rampbooks.DecimalPoint, lines))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "totals.csv"), totals.Bytes(), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lines.csv"), detail.Bytes(), 0o600))
	script := `
import pandas as pd
text = {"product": str, "asset": str, "units": str, "moved_units": str, "project": str}
none = {"count": "", "items": "", "tokens": ""}
totals = pd.read_csv("totals.csv", dtype=text, keep_default_na=False, na_values=none)
of = totals[totals.figure == "tokens_moved"]
print(of.groupby(["product", "token", "direction"]).tokens.sum().round(6).to_dict())
print(sorted(totals[totals.figure == "items_taken"].asset), [int(n) for n in of.units])
lines = pd.read_csv("lines.csv", dtype=text)
print(lines[lines.source == "orders"].moved.sum().round(6), lines.moved.dtype)
`
	run := exec.Command(python, "-c", script)
	run.Dir = dir
	said, err := run.CombinedOutput()
	require.NoError(t, err, string(said))
	contract := "'" + rig.Token.Hex() + "'"
	assert.Equal(t, "{("+contract+", "+contract+", 'mint'): 9.9, ('pack 1,5; \"x\"', "+contract+", 'mint'): 1.234}\n"+
		`["'=1+1", '007', 'item_gold'] [9900000000000000000, 1234000000000000000]`+"\n11.134 float64\n", string(said))
}

// hledger reads the lines with the rules of docs/books.md.
func TestHledgerReadsTheLines(t *testing.T) {
	hledger := program(t, "hledger")
	books, lines := awkward(t)
	document := string(must.Get(os.ReadFile("../docs/books.md"))(t))
	_, rules, found := strings.Cut(document, "```hledger\n")
	require.True(t, found)
	rules, _, _ = strings.Cut(rules, "```")
	for _, sign := range []rampbooks.DecimalSign{rampbooks.DecimalPoint, rampbooks.DecimalComma} {
		dir := t.TempDir()
		var text bytes.Buffer
		require.NoError(t, books.WriteLinesCSV(&text, sign, lines))
		own := rules
		if sign == rampbooks.DecimalComma {
			own = strings.NewReplacer("separator ,", "separator ;", "decimal-mark .", "decimal-mark ,").Replace(own)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "lines.csv"), text.Bytes(), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "lines.csv.rules"), []byte(own), 0o600))
		run := exec.Command(hledger, "-f", filepath.Join(dir, "lines.csv"),
			"balance", "-N", "--flat", "--format", "%(account) %(total)")
		run.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		said, err := run.CombinedOutput()
		require.NoError(t, err, string(said))
		want := "fees 0.100 GOLD\nmint -11.234 GOLD\nplayers 11.134 GOLD\n"
		assert.Equal(t, strings.ReplaceAll(want, ".", string(sign)), string(said))
	}
}
