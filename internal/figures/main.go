// Command figures prints how large the project is: files, code lines and exported names
// of the package, code lines of internal/redact, and words of the documents. Run it in
// the root of the repository:
//
//	go run ./internal/figures
//
// A code line is one that holds more than a comment. Tests are not counted. An exported
// name is a type, function, constant or variable, but not a method or a field.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	files := sources(".")
	names := 0
	for _, file := range files {
		names += exportedNames(file)
	}
	fmt.Printf("%6d files of the package\n", len(files))
	fmt.Printf("%6d code lines of the package\n", codeLines(files))
	fmt.Printf("%6d exported names of the package\n", names)
	fmt.Printf("%6d code lines of internal/redact\n", codeLines(sources("internal/redact")))

	documents := append([]string{"README.md"}, matches("docs/*.md")...)
	all := 0
	for _, document := range documents {
		n := len(strings.Fields(string(read(document))))
		fmt.Printf("%6d words of %s\n", n, document)
		all += n
	}
	fmt.Printf("%6d words of the documents\n", all)
}

// sources returns the Go files of a folder that are not tests.
func sources(folder string) []string {
	var files []string
	for _, file := range matches(filepath.Join(folder, "*.go")) {
		if !strings.HasSuffix(file, "_test.go") {
			files = append(files, file)
		}
	}
	return files
}

// matches returns the files that match a pattern, of which there must be some.
func matches(pattern string) []string {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		log.Fatalf("no file matches %s; run this in the root of the repository", pattern)
	}
	return files
}

func read(file string) []byte {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	return text
}

// codeLines counts the lines that have a token other than a comment. A text of several
// lines counts with each of them.
func codeLines(files []string) int {
	all := 0
	for _, name := range files {
		text := read(name)
		file := token.NewFileSet().AddFile(name, -1, len(text))
		var s scanner.Scanner
		s.Init(file, text, nil, 0) // skips comments
		lines := map[int]bool{}
		for {
			pos, tok, literal := s.Scan()
			if tok == token.EOF {
				break
			}
			if tok == token.SEMICOLON && literal == "\n" { // not written, but at the end of a line
				continue
			}
			for n := range 1 + strings.Count(literal, "\n") {
				lines[file.Line(pos)+n] = true
			}
		}
		all += len(lines)
	}
	return all
}

// exportedNames counts the exported names that a file declares for the package.
func exportedNames(file string) int {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		log.Fatal(err)
	}
	var names []*ast.Ident
	for _, declaration := range parsed.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name)
				case *ast.ValueSpec:
					names = append(names, s.Names...)
				}
			}
		}
	}
	exported := 0
	for _, name := range names {
		if name.IsExported() {
			exported++
		}
	}
	return exported
}
