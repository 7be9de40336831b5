// Command figures prints how large the project is. Run it in the root of the repository:
//
//	go run ./internal/test/figures
//
// It counts the files that git has. A code line is one that is neither blank nor only a
// comment, and the characters are those of the code lines, with their ends. An exported name
// is a type, function, constant or variable, but not a method or a field.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// size is how much Go there is.
type size struct{ files, lines, chars, tests, testChars int }

func main() {
	log.SetFlags(0)
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		log.Fatalf("git ls-files: %v", err)
	}
	entries := map[string]bool{}
	folders := map[string]*size{}
	var all size
	names, modules, words, long, rootLines := 0, 0, 0, 0, 0
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		entry, _, _ := strings.Cut(file, "/")
		entries[entry] = true
		folder := path.Dir(file)
		if path.Base(file) == "go.mod" {
			modules++
		}
		if document, _ := path.Match("docs/*.md", file); document || file == "README.md" {
			n := len(strings.Fields(read(file)))
			fmt.Printf("%9d words of %s\n", n, file)
			words += n
		}
		if path.Ext(file) != ".go" {
			continue
		}
		text := read(file)
		test := strings.HasSuffix(file, "_test.go")
		if folders[folder] == nil {
			folders[folder] = new(size)
		}
		folders[folder].add(text, test)
		all.add(text, test)
		if folder == "." && !test {
			names += exportedNames(file, text)
			for line := range strings.Lines(text) {
				rootLines++
				if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 100 {
					long++
				}
			}
		}
	}
	fmt.Printf("\n%9s %9s %9s %9s %9s\n", "files", "code", "chars", "tests", "chars")
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		folders[folder].print(folder)
	}
	all.print("all modules")
	fmt.Printf("\n%9d exported names of the package\n", names)
	fmt.Printf("%9d lines of the package above 100 characters: %.1f%% of %d\n", long,
		100*float64(long)/float64(rootLines), rootLines)
	fmt.Printf("%9d modules\n", modules)
	fmt.Printf("%9d entries in the root directory\n", len(entries))
	fmt.Printf("%9d words of the documents\n", words)
}

// add counts a file.
func (s *size) add(text string, test bool) {
	lines, chars := 0, 0
	for line := range strings.Lines(text) {
		if code := strings.TrimSpace(line); code != "" && !strings.HasPrefix(code, "//") {
			lines++
			chars += utf8.RuneCountInString(line)
		}
	}
	if test {
		s.tests, s.testChars = s.tests+lines, s.testChars+chars
		return
	}
	s.files, s.lines, s.chars = s.files+1, s.lines+lines, s.chars+chars
}

func (s *size) print(folder string) {
	fmt.Printf("%9d %9d %9d %9d %9d  %s\n", s.files, s.lines, s.chars, s.tests, s.testChars,
		cmp.Or(strings.TrimPrefix(folder, "."), "the package"))
}

func read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	return string(text)
}

// exportedNames counts the exported names that a file declares for the package.
func exportedNames(file, text string) int {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		log.Fatal(err)
	}
	exported := 0
	count := func(names ...*ast.Ident) bool {
		exported += len(slices.DeleteFunc(names, func(n *ast.Ident) bool { return !n.IsExported() }))
		return false
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch d := node.(type) {
		case *ast.FuncDecl:
			return d.Recv == nil && count(d.Name)
		case *ast.TypeSpec:
			return count(d.Name)
		case *ast.ValueSpec:
			return count(d.Names...)
		}
		return true
	})
	return exported
}
