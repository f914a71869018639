#include "conformance/isolated.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <thread>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/memory_file.h"

namespace headrace::conformance {

namespace {

std::string one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  return text;
}

void write_line(int descriptor, const std::string& line) {
  const std::string text = line + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(descriptor, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads
    at += static_cast<size_t>(written);
  }
}

// The parts of a line between tabs.
std::vector<std::string> parts_of(const std::string& line) {
  std::vector<std::string> parts(1);
  for (const char c : line) {
    if (c == '\t') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

size_t number_of(const std::string& text) {
  size_t number = SIZE_MAX;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// One child process, its report, and what it writes to its standard output.
class Child {
 public:
  Child(const CheckRequest& request, size_t first) : Child(request, first, make_pipe()) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  // An error of ours leaves a child with cases that nobody waits for.
  ~Child() { std::uncaught_exceptions() > 0 ? kill() : static_cast<void>(end()); }

  enum class Event : uint8_t { line, ended, late };
  // Waits for the next line of the report.
  Event next_line(std::string& line, double seconds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (true) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Event::line;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      if (left.count() <= 0) return Event::late;
      pollfd ready{report_.number(), POLLIN, 0};
      if (::poll(&ready, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000))) <= 0) continue;
      char bytes[4096];
      const ssize_t count = ::read(report_.number(), bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return Event::ended;
      buffer_.append(bytes, static_cast<size_t>(count));
    }
  }

  // Waits until the process ends, and ends it where it takes longer than a case may. Returns how it ended.
  int end() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds_);
    while (process_ > 0) {
      if (is_late_) ::kill(process_, SIGKILL);
      const pid_t ended = ::waitpid(process_, &status_, is_late_ ? 0 : WNOHANG);
      if (ended == process_ || (ended < 0 && errno != EINTR)) process_ = -1;
      if (ended != 0) continue;
      is_late_ = std::chrono::steady_clock::now() > until;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return status_;
  }
  // Returns whether it had to be ended.
  bool is_late() const { return is_late_; }
  void kill() {
    is_late_ = true;
    end();
  }

  int64_t num_output_bytes() const { return ::lseek(output_.number(), 0, SEEK_END); }

 private:
  struct Pipe {
    int read, write;
  };
  static Pipe make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_user_error("the system gives no pipe: {}", std::strerror(errno));
    return {ends[0], ends[1]};
  }

  Child(const CheckRequest& request, size_t first, Pipe pipe)
      : report_(pipe.read),
        output_(make_memory_file("the child's output").value_or_throw()),
        seconds_(request.timeout_seconds) {
    const Descriptor their_end(pipe.write);
    process_ = request.start(first, their_end.number(), output_.number());
  }

  Descriptor report_, output_;
  double seconds_;
  pid_t process_ = -1;
  int status_ = 0;
  bool is_late_ = false;
  std::string buffer_;
};

// Reads reports until all cases have one.
class Checks {
 public:
  explicit Checks(const CheckRequest& request) : request_(request) {}

  std::vector<CaseReport> run() {
    while (reports_.size() < request_.cases.size()) run_from(reports_.size());
    return std::move(reports_);
  }

 private:
  void run_from(size_t first) {
    std::fflush(nullptr);  // a forked child would write what is left a second time
    Child child(request_, first);
    int64_t num_written = 0;
    std::string line;
    while (reports_.size() < request_.cases.size()) {
      const Child::Event event = child.next_line(line, request_.timeout_seconds);
      if (event != Child::Event::line) return add_end(child, event);
      const std::vector<std::string> parts = parts_of(line);
      if (parts[0] == "begin" && request_.progress) request_.progress(reports_.size());
      if (parts[0] == "finding" && parts.size() == 3) findings_.push_back({parts[1], parts[2]});
      if (parts[0] == "warning" && parts.size() == 3) warnings_.push_back({parts[1], parts[2]});
      if (parts[0] == "end" && parts.size() == 4) {
        if (child.num_output_bytes() > num_written)
          findings_.push_back({"output", "it writes to the standard output, which is the program's"});
        num_written = child.num_output_bytes();
        add_report(parts[1] == "1", static_cast<int64_t>(number_of(parts[2])), parts[3]);
      }
    }
  }

  void add_report(bool is_claimed, int64_t num_checks, std::string refusal = "") {
    const Case& one = request_.cases[reports_.size()];
    reports_.push_back({.name = one.name,
                        .is_claimed = is_claimed,
                        .num_checks = num_checks,
                        .findings = std::move(findings_),
                        .warnings = std::move(warnings_),
                        .refusal = std::move(refusal),
                        .program = shown_program(one)});
    findings_.clear();
    warnings_.clear();
  }

  // The child ended, or takes too long, in the middle of a case.
  void add_end(Child& child, Child::Event event) {
    if (event == Child::Event::late) child.kill();
    const int status = child.end();
    if (child.is_late()) {
      findings_.push_back({"hang", fmt::format("it did not end within {} seconds", request_.timeout_seconds)});
    } else if (WIFSIGNALED(status)) {
      findings_.push_back({"crash", fmt::format("the process ended by signal {} ({})", WTERMSIG(status),
                                                ::strsignal(WTERMSIG(status)))});
    } else {
      findings_.push_back({"exit", fmt::format("the process ended with code {}", WEXITSTATUS(status))});
    }
    add_report(true, 1);
  }

  const CheckRequest& request_;
  std::vector<CaseReport> reports_;
  std::vector<Finding> findings_, warnings_;  // those of the current case
};

}  // namespace

std::vector<CaseReport> run_isolated(const CheckRequest& request) { return Checks(request).run(); }

void run_child(const std::string& backend, const std::vector<Case>& cases, size_t first, int report) {
  for (size_t i = first; i < cases.size(); ++i) {
    write_line(report, fmt::format("begin\t{}", i));
    CaseReport one;
    try {
      one = check_case(backend, cases[i]);
    } catch (const std::exception& error) {
      one.is_claimed = true;
      one.findings.push_back({"case", error.what()});
    }
    std::fflush(nullptr);  // so that the case is charged with what it printed
    for (const Finding& finding : one.findings)
      write_line(report, fmt::format("finding\t{}\t{}", finding.check, one_line(finding.message)));
    for (const Finding& warning : one.warnings)
      write_line(report, fmt::format("warning\t{}\t{}", warning.check, one_line(warning.message)));
    write_line(report, fmt::format("end\t{}\t{}\t{}", one.is_claimed ? 1 : 0, one.num_checks, one_line(one.refusal)));
  }
}

}  // namespace headrace::conformance
