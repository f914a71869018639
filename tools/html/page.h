// Pages: self-contained HTML files that show data. A page fetches nothing, and its content security policy lets only
// the scripts and styles run that are in it here, by their hashes. Data is JSON in a block that the browser does not
// run, so no name of a model can become markup.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headrace::tools::html {

// A script or style of this folder, or a library of others. It is compiled into the program.
struct Asset {
  std::string_view text;
  std::string_view sha256;   // hash of the text, in hexadecimal digits
  std::string_view licence;  // licence of others' work; empty for ours
};

// The parts of a page: a style, and scripts that run in order.
struct PageKind {
  const Asset* style;
  std::span<const Asset* const> scripts;
};

// Draws the graph of `headrace explain --json`, or of a program of `headrace inspect --json`.
const PageKind& explain_page();
const PageKind& inspect_page();
// Draws the trace of a pipeline (executors/pipeline/trace.h), as chrome_trace() writes it.
const PageKind& timeline_page();
// Draws the stages of `headrace pipeline inspect --json`.
const PageKind& pipeline_page();
// Draws the times of `headrace bench` (headrace/bench_page.h).
const PageKind& bench_page();

// Escapes text for HTML, between tags and in quoted attributes.
std::string escaped(std::string_view text);

// Returns the page as a file's text. `json` is what its scripts read; `title` is plain text in UTF-8.
std::string make_page(const PageKind& kind, std::string_view title, std::string_view json);

}  // namespace headrace::tools::html
