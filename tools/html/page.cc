#include "tools/html/page.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <vector>

#include "object/base64.h"
#include "tools/html/assets.h"

namespace headrace::tools::html {

namespace {

// "'sha256-...'", as content security policies name a script.
std::string source_of(const Asset& asset) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < asset.sha256.size(); i += 2) {
    uint8_t value = 0;
    std::from_chars(asset.sha256.data() + i, asset.sha256.data() + i + 2, value, 16);
    bytes.push_back(std::byte{value});
  }
  return fmt::format("'sha256-{}'", encode_base64(bytes));
}

// JSON in which nothing looks like markup. Outside of strings it has none of these characters.
std::string as_script_data(std::string_view json) {
  std::string text;
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&')
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      text += c;
  }
  return text;
}

std::string licences_of(const PageKind& kind) {
  std::string text;
  for (const Asset* script : kind.scripts) {
    if (!script->licence.empty()) text += fmt::format("<pre>{}</pre>\n", escaped(script->licence));
  }
  return text.empty() ? "" : fmt::format("<details id=\"licences\"><summary>Licences</summary>\n{}</details>\n", text);
}

}  // namespace

const PageKind& explain_page() {
  static constexpr std::array<const Asset*, 6> kScripts{&kDagre, &kKit, &kFold, &kGraph, &kDescribe, &kExplain};
  static constexpr PageKind kKind{&kGraphStyle, kScripts};
  return kKind;
}

const PageKind& inspect_page() {
  static constexpr std::array<const Asset*, 6> kScripts{&kDagre, &kKit, &kFold, &kGraph, &kDescribe, &kInspect};
  static constexpr PageKind kKind{&kGraphStyle, kScripts};
  return kKind;
}

const PageKind& timeline_page() {
  static constexpr std::array<const Asset*, 2> kScripts{&kKit, &kTimeline};
  static constexpr PageKind kKind{&kTimelineStyle, kScripts};
  return kKind;
}

const PageKind& bench_page() {
  static constexpr std::array<const Asset*, 2> kScripts{&kKit, &kBench};
  static constexpr PageKind kKind{&kBenchStyle, kScripts};
  return kKind;
}

const PageKind& pipeline_page() {
  static constexpr std::array<const Asset*, 3> kScripts{&kDagre, &kKit, &kPipeline};
  static constexpr PageKind kKind{&kPipelineStyle, kScripts};
  return kKind;
}

std::string escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    switch (c) {
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '&':
        made += "&amp;";
        break;
      case '"':
        made += "&quot;";
        break;
      case '\'':
        made += "&#39;";
        break;
      default:
        made += c;
    }
  }
  return made;
}

std::string make_page(const PageKind& kind, std::string_view title, std::string_view json) {
  std::string sources, scripts;
  for (const Asset* script : kind.scripts) {
    sources += " " + source_of(*script);
    scripts += fmt::format("<script>{}</script>\n", script->text);
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src{}; style-src {}; "
      "base-uri 'none'; form-action 'none'\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<div id=\"page\"></div>\n"
      "<noscript>This page is drawn by its scripts; allow them to see it.</noscript>\n{}"
      "<script type=\"application/json\" id=\"data\">{}</script>\n{}</body>\n</html>\n",
      sources, source_of(*kind.style), escaped(title), kind.style->text, licences_of(kind), as_script_data(json),
      scripts);
}

}  // namespace headrace::tools::html
